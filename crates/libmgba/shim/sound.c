/* Leaves out the mixing of sound that nobody reads: a quarter of a GBA's frame.
 *
 * libmgba mixes samples, 2 to 16 at a time, whenever a window of 1,024 cycles is
 * over, and drops them while its buffer is full. The samples of the last windows of a
 * frame are part of its state; no others outlive their window. So within a frame,
 * while the buffer is full, a window advances the channels and mixes nothing. A Game
 * Boy mixes every sample, because each one depends on those before it. */
#include "internal.h"

#ifndef FW_HAVE_AUDIO_BUFFER

#include <mgba/core/blip_buf.h>
#include <mgba/internal/gba/gba.h>
#include <mgba/internal/gba/video.h>

enum { WINDOW = GBA_ARM7TDMI_FREQUENCY / 0x4000 };

/* A state holds samples of up to two windows, which take less than three lines. The
 * processor may run on for a bit after the frame's end. */
static bool frame_ends_soon(const struct GBA* gba) {
	return gba->video.vcount >= GBA_VIDEO_VERTICAL_PIXELS - 4 && gba->video.vcount <= GBA_VIDEO_VERTICAL_PIXELS + 1;
}

static bool is_unread(const struct GBA* gba) {
	const struct GBAAudio* audio = &gba->audio;
	return (size_t) blip_samples_avail(audio->psg.left) >= audio->samples && !gba->stream && !gba->sync && !audio->mixer;
}

/* In place of libmgba's own, which it calls when it has to. */
static void end_window(struct mTiming* timing, void* context, uint32_t late) {
	struct fw_core* self = context;
	struct GBA* gba = self->core->board;
	struct GBAAudio* audio = &gba->audio;
	int32_t elapsed = mTimingCurrentTime(timing) - late - audio->lastSample;
	int samples = 2 << GBARegisterSOUNDBIASGetResolution(audio->soundbias);
	if (elapsed != WINDOW || samples * audio->sampleInterval != WINDOW || frame_ends_soon(gba) || !is_unread(gba)) {
		self->end_window(timing, audio, late);
		return;
	}
	/* The wave channel's sample depends on how often it was looked at; the others' do not. */
	int sample = audio->psg.playingCh3 ? audio->sampleIndex : samples - 1;
	for (; sample < samples; ++sample) {
		GBAudioRun(&audio->psg, audio->lastSample + sample * audio->sampleInterval, 0xF);
	}
	audio->sampleIndex = 0;
	audio->lastSample += WINDOW;
	memset(audio->chA.samples, audio->chA.samples[samples - 1], sizeof(audio->chA.samples));
	memset(audio->chB.samples, audio->chB.samples[samples - 1], sizeof(audio->chB.samples));
	mTimingSchedule(timing, &audio->sampleEvent, WINDOW - late);
}

void fw_sound_begin_frame(struct fw_core* self) {
	struct mCore* core = self->core;
	/* Scripts and debuggers can look at the state within a frame. */
	if (self->mixes_all || self->scripts || core->debugger || core->platform(core) != mPLATFORM_GBA) {
		return;
	}
	struct mTimingEvent* event = &((struct GBA*) core->board)->audio.sampleEvent;
	self->end_window = event->callback;
	event->callback = end_window;
	event->context = self;
}

void fw_sound_end_frame(struct fw_core* self) {
	if (!self->end_window) {
		return;
	}
	struct GBAAudio* audio = &((struct GBA*) self->core->board)->audio;
	audio->sampleEvent.callback = self->end_window;
	audio->sampleEvent.context = audio;
	self->end_window = NULL;
}

#else

/* From 0.11 the buffer is libmgba's own business. */
void fw_sound_begin_frame(struct fw_core* self) {
	UNUSED(self);
}

void fw_sound_end_frame(struct fw_core* self) {
	UNUSED(self);
}

#endif

void fw_mix_all_sound(struct fw_core* self, bool all) {
	self->mixes_all = all;
}
