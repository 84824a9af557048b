/* The picture and the sound. */
#include "internal.h"

#include <mgba/internal/gba/gba.h>
#include <mgba/internal/gba/renderers/video-software.h>

#ifdef FW_HAVE_AUDIO_BUFFER
#include <mgba-util/audio-buffer.h>
#else
#include <mgba/core/blip_buf.h>
#endif

#include <stdatomic.h>

/* The size of the sound buffer in stereo pairs, enough for ten frames at AUDIO_RATE. If
 * nobody reads the sound, libmgba stops producing it at this size, so nothing can overflow. */
#define AUDIO_BUFFER 0x2000
#define AUDIO_RATE 48000

const uint32_t* fw_frame(const struct fw_core* self, unsigned* width, unsigned* height, size_t* stride) {
#ifdef FW_HAVE_CURRENT_VIDEO_SIZE
	self->core->currentVideoSize(self->core, width, height);
#else
	self->core->desiredVideoDimensions(self->core, width, height);
#endif
	if (*width > FW_STRIDE) {
		*width = FW_STRIDE;
	}
	if (*height > FW_ROWS) {
		*height = FW_ROWS;
	}
	*stride = FW_STRIDE;
	return self->drawn;
}

/* libmgba's own function, which is the same for all cores. */
static void (*_Atomic libmgba_draw_line)(struct GBAVideoRenderer*, int y);

/* Prefetches the memory of a line and lets libmgba draw it. With many emulators, a picture has left the processor's
 * caches when the next one is drawn over it. Without the prefetch, 64 emulators spend a sixth of their time waiting for
 * this memory. */
static void draw_line(struct GBAVideoRenderer* renderer, int y) {
	const struct GBAVideoSoftwareRenderer* software = (const struct GBAVideoSoftwareRenderer*) renderer;
	const char* line = (const char*) &software->outputBuffer[software->outputBufferStride * y];
	for (size_t at = 0; at < GBA_VIDEO_HORIZONTAL_PIXELS * sizeof(*software->outputBuffer); at += 64) {
		__builtin_prefetch(line + at, 1);
	}
	atomic_load_explicit(&libmgba_draw_line, memory_order_relaxed)(renderer, y);
}

void fw_picture_setup(struct mCore* core) {
	if (core->platform(core) != mPLATFORM_GBA) {
		return;
	}
	struct GBAVideoRenderer* renderer = ((struct GBA*) core->board)->video.renderer;
	if (renderer->drawScanline != draw_line) {
		atomic_store_explicit(&libmgba_draw_line, renderer->drawScanline, memory_order_relaxed);
		renderer->drawScanline = draw_line;
	}
}

/* libmgba does not draw lines that have not changed, so the old picture is copied. */
void fw_draw_into(struct fw_core* self, uint32_t* pixels) {
	if (!pixels) {
		pixels = self->pixels;
	}
	if (pixels == self->drawn) {
		return;
	}
	memcpy(pixels, self->drawn, sizeof(*pixels) * FW_STRIDE * FW_ROWS);
	self->drawn = pixels;
	self->core->setVideoBuffer(self->core, (void*) pixels, FW_STRIDE);
}

int fw_screenshot(struct fw_core* self, uint8_t** out, size_t* len) {
	struct VFile* vf = VFileMemChunk(NULL, 0);
	if (!vf) {
		return FW_NO_MEMORY;
	}
	if (!mCoreTakeScreenshotVF(self->core, vf)) {
		vf->close(vf);
		return FW_FAILED;
	}
	return fw_take_file(vf, out, len);
}

static size_t layers(const struct fw_core* self, bool sound, const struct mCoreChannelInfo** out) {
	const struct mCore* core = self->core;
	return sound ? core->listAudioChannels(core, out) : core->listVideoLayers(core, out);
}

bool fw_layer(const struct fw_core* self, bool sound, size_t index, struct fw_layer* out) {
	const struct mCoreChannelInfo* info;
	if (index >= layers(self, sound, &info)) {
		return false;
	}
	*out = (struct fw_layer) {
		.name = info[index].internalName,
		.title = info[index].visibleName,
		.enabled = !(self->layers_off[sound] & 1u << index),
	};
	return true;
}

void fw_layer_enable(struct fw_core* self, bool sound, size_t index, bool enabled) {
	struct mCore* core = self->core;
	const struct mCoreChannelInfo* info;
	if (index >= layers(self, sound, &info)) {
		return;
	}
	uint32_t bit = 1u << index;
	self->layers_off[sound] = enabled ? self->layers_off[sound] & ~bit : self->layers_off[sound] | bit;
	if (sound) {
		core->enableAudioChannel(core, info[index].id, enabled);
		return;
	}
	core->enableVideoLayer(core, info[index].id, enabled);
	if (core->platform(core) == mPLATFORM_GBA) {
		/* This makes libmgba draw all lines again, including those that have not changed. */
		struct GBAVideoRenderer* renderer = ((struct GBA*) core->board)->video.renderer;
		renderer->writeVRAM(renderer, 0);
	}
}

#ifdef FW_HAVE_AUDIO_BUFFER
/* From mGBA 0.11 on, the core does not resample: its rate is the rate of the hardware. */
void fw_audio_setup(struct mCore* core) {
	core->setAudioBufferSize(core, AUDIO_BUFFER);
}

unsigned fw_audio_rate(const struct fw_core* self) {
	return self->core->audioSampleRate(self->core);
}

size_t fw_audio_available(struct fw_core* self) {
	return mAudioBufferAvailable(self->core->getAudioBuffer(self->core));
}

size_t fw_audio_read(struct fw_core* self, int16_t* out, size_t count) {
	return mAudioBufferRead(self->core->getAudioBuffer(self->core), out, count);
}
#else
void fw_audio_setup(struct mCore* core) {
	core->setAudioBufferSize(core, AUDIO_BUFFER);
	for (int channel = 0; channel < 2; ++channel) {
		blip_set_rates(core->getAudioChannel(core, channel), core->frequency(core), AUDIO_RATE);
	}
}

unsigned fw_audio_rate(const struct fw_core* self) {
	UNUSED(self);
	return AUDIO_RATE;
}

size_t fw_audio_available(struct fw_core* self) {
	int available = blip_samples_avail(self->core->getAudioChannel(self->core, 0));
	return available > 0 ? available : 0;
}

size_t fw_audio_read(struct fw_core* self, int16_t* out, size_t count) {
	if (count > AUDIO_BUFFER * 2) {
		count = AUDIO_BUFFER * 2;
	}
	int taken = blip_read_samples(self->core->getAudioChannel(self->core, 0), out, (int) count, 1);
	blip_read_samples(self->core->getAudioChannel(self->core, 1), out + 1, (int) count, 1);
	return taken > 0 ? taken : 0;
}
#endif
