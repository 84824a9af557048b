/* Skips the mixing of sound that nobody reads, which would take a quarter of a frame's time.
 *
 * libmgba mixes samples at the end of each window, a fixed span of time. It drops them while its buffer is full.
 *
 * A GBA's window has 1,024 cycles and 2 to 16 samples. The samples of the last windows of a frame are part of the
 * console's state. All others are used only within their window. So while the buffer is full, the code here only
 * advances the channels at the end of a window, and mixes nothing. The exception is the end of a frame, where libmgba
 * mixes as usual.
 *
 * A Game Boy's window has 32 samples. They go through a filter that is part of the console's state, so each sample
 * depends on those before it. But between two changes of the channels, all samples are the same, and the filter soon
 * stops changing. So while the buffer is full, the code here reads the channels only when they change, and runs the
 * filter until it stops changing. */
#include "internal.h"

#ifndef FW_HAVE_AUDIO_BUFFER

#include <mgba/core/blip_buf.h>
#include <mgba/internal/gb/gb.h>
#include <mgba/internal/gba/gba.h>
#include <mgba/internal/gba/video.h>

/* ---- the GBA ---- */

enum { WINDOW = GBA_ARM7TDMI_FREQUENCY / 0x4000 };

/* Whether the samples of this window may become part of a state. A state contains samples of up to two windows, which
 * take less than three lines. The processor may run a bit longer than the frame. */
static bool frame_ends_soon(const struct GBA* gba) {
	return gba->video.vcount >= GBA_VIDEO_VERTICAL_PIXELS - 4 && gba->video.vcount <= GBA_VIDEO_VERTICAL_PIXELS + 1;
}

static bool is_unread(const struct GBA* gba) {
	const struct GBAAudio* audio = &gba->audio;
	return (size_t) blip_samples_avail(audio->psg.left) >= audio->samples && !gba->stream && !gba->sync && !audio->mixer;
}

/* Replaces libmgba's own function for the end of a window. Calls that function if mixing cannot be skipped. */
static void end_gba_window(struct mTiming* timing, void* context, uint32_t late) {
	struct fw_core* self = context;
	struct GBA* gba = self->core->board;
	struct GBAAudio* audio = &gba->audio;
	int32_t elapsed = mTimingCurrentTime(timing) - late - audio->lastSample;
	int samples = 2 << GBARegisterSOUNDBIASGetResolution(audio->soundbias);
	if (elapsed != WINDOW || samples * audio->sampleInterval != WINDOW || frame_ends_soon(gba) || !is_unread(gba)) {
		self->end_window(timing, audio, late);
		return;
	}
	/* The wave channel's sample depends on how often the channel was run. The samples of the other channels do not. */
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

/* ---- the Game Boy ---- */

enum {
	/* Cycles of a sample, in libmgba's timing. */
	SAMPLE = 64,
	ALL_CHANNELS = 0x1F,
	/* The factor of libmgba's filter, as a fraction of 0x10000. */
	FILTER = 65368,
	/* The time after which libmgba updates a square channel even if it makes no sound. */
	LONG_TIME = 0x40000000
};

static int32_t since(uint32_t now, uint32_t then) {
	return now - then;
}

/* The time from `now` until a channel may change its sample. */
static int64_t until_change(const struct GBAudio* audio, int32_t now) {
	/* If the noise channel has changed several times since the last read, the next read returns an average. */
	if (audio->ch4.nSamples > 1) {
		return 0;
	}
	int64_t until = INT32_MAX;
	if (!audio->enable) {
		return until;
	}
	const struct GBAudioSquareChannel* squares[] = { &audio->ch1, &audio->ch2 };
	const bool play[] = { audio->playingCh1, audio->playingCh2 };
	for (int i = 0; i < 2; ++i) {
		bool sounds = play[i] && squares[i]->envelope.dead != 2;
		int64_t period = sounds ? 4 * (2048 - squares[i]->control.frequency) * (int) audio->timingFactor : LONG_TIME;
		int64_t next = period - since(now, squares[i]->lastUpdate);
		until = next < until ? next : until;
	}
	if (audio->playingCh3) {
		/* On a monochrome Game Boy, a program can read the wave memory in the first cycles after a change. */
		bool just_changed = audio->style == GB_AUDIO_DMG && audio->ch3.readable;
		int64_t next = just_changed ? 0 : since(audio->ch3.nextUpdate, now);
		until = next < until ? next : until;
	}
	if (audio->playingCh4) {
		int64_t period = (int64_t) (audio->ch4.ratio ? 2 * audio->ch4.ratio : 1) << audio->ch4.frequency;
		int64_t next = 8 * audio->timingFactor * period - since(now, audio->ch4.lastEvent);
		until = next < until ? next : until;
	}
	return until;
}

static int16_t filter(int32_t* state, int16_t sample) {
	int16_t filtered = sample - (*state >> 16);
	*state = ((uint32_t) sample << 16) - (uint32_t) (filtered * FILTER);
	return filtered;
}

/* Mixes samples, with the same results as libmgba's own function. */
static void mix(struct GBAudio* audio, int32_t now) {
	int end = since(now, audio->lastSample) / SAMPLE;
	if (end > GB_MAX_SAMPLES) {
		end = GB_MAX_SAMPLES;
	}
	int at = audio->sampleIndex;
	while (at < end) {
		int32_t time = (uint32_t) audio->lastSample + at * SAMPLE;
		GBAudioRun(audio, time, ALL_CHANNELS);
		int64_t same = (until_change(audio, time) + SAMPLE - 1) / SAMPLE;
		int stop = same <= 1 ? at + 1 : same >= end - at ? end : at + (int) same;
		int16_t left;
		int16_t right;
		GBAudioSamplePSG(audio, &left, &right);
		left = left * audio->masterVolume * 6 >> 7;
		right = right * audio->masterVolume * 6 >> 7;
		struct mStereoSample mixed = { 0 };
		bool rests = false; /* whether the filter has stopped changing, so that all samples until `stop` are equal */
		for (; at < stop; ++at) {
			if (!rests) {
				int32_t before[] = { audio->capLeft, audio->capRight };
				mixed.left = filter(&audio->capLeft, left);
				mixed.right = filter(&audio->capRight, right);
				rests = audio->capLeft == before[0] && audio->capRight == before[1];
			}
			audio->currentSamples[at] = mixed;
		}
	}
	audio->sampleIndex = at;
	if (at == GB_MAX_SAMPLES) {
		audio->lastSample += SAMPLE * GB_MAX_SAMPLES;
		audio->sampleIndex = 0;
	}
}

/* Replaces libmgba's own function for the end of a window. */
static void end_gb_window(struct mTiming* timing, void* context, uint32_t late) {
	struct fw_core* self = context;
	struct GB* gb = self->core->board;
	struct GBAudio* audio = &gb->audio;
	bool unread = (size_t) blip_samples_avail(audio->left) >= audio->samples && !gb->stream && !gb->sync;
	if (!unread || audio->timingFactor * 32 != SAMPLE) {
		self->end_window(timing, audio, late);
		return;
	}
	mix(audio, mTimingCurrentTime(timing));
	mTimingSchedule(timing, &audio->sampleEvent, audio->sampleInterval * audio->timingFactor - late);
}

/* ---- both ---- */

static struct mTimingEvent* window_event(struct mCore* core, void** context) {
	if (core->platform(core) == mPLATFORM_GB) {
		struct GBAudio* audio = &((struct GB*) core->board)->audio;
		*context = audio;
		return &audio->sampleEvent;
	}
	struct GBAAudio* audio = &((struct GBA*) core->board)->audio;
	*context = audio;
	return &audio->sampleEvent;
}

void fw_sound_begin_frame(struct fw_core* self) {
	struct mCore* core = self->core;
	/* Scripts and debuggers can read the state within a frame. */
	if (self->mixes_all || self->scripts || core->debugger) {
		return;
	}
	void* context;
	struct mTimingEvent* event = window_event(core, &context);
	self->end_window = event->callback;
	event->callback = core->platform(core) == mPLATFORM_GB ? end_gb_window : end_gba_window;
	event->context = self;
}

void fw_sound_end_frame(struct fw_core* self) {
	if (!self->end_window) {
		return;
	}
	void* context;
	struct mTimingEvent* event = window_event(self->core, &context);
	event->callback = self->end_window;
	event->context = context;
	self->end_window = NULL;
}

#else

/* From mGBA 0.11 on, libmgba has another buffer, so nothing is skipped. */
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
