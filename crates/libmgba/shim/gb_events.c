/* Handles two events of a Game Boy faster than libmgba does. These events occur hundreds of times in a frame. */
#include "internal.h"

/* Only for versions before mGBA 0.11: see FEATURES in build.rs. */
#ifndef FW_HAVE_AUDIO_BUFFER

#include <mgba/internal/gb/gb.h>
#include <mgba/internal/gb/io.h>

#include <stdatomic.h>

typedef void (*callback)(struct mTiming*, void* context, uint32_t late);

/* libmgba's own functions. They have no public name, so they are taken from the events. They are the same for all
 * cores. */
static _Atomic callback libmgba_timer;
static _Atomic callback libmgba_mode2;
static _Atomic callback libmgba_mode3;

/* All threads share these variables. They are written only if they change, because a write slows the other threads
 * down. */
static void store_callback(_Atomic callback* own, callback function) {
	if (atomic_load_explicit(own, memory_order_relaxed) != function) {
		atomic_store_explicit(own, function, memory_order_relaxed);
	}
}

static callback load_callback(_Atomic callback* own) {
	return atomic_load_explicit(own, memory_order_relaxed);
}

/* Whether a counter that goes from `from` to `to` reaches a multiple of `period`, which is a power of 2. */
static bool passes(uint32_t from, uint32_t to, uint32_t period) {
	return (from ^ to) & ~(period - 1);
}

/* Advances the divider by up to 16 steps at once. libmgba advances it step by step, because some steps also advance the
 * timer or the sound. If one of the steps does, this calls libmgba's own function. */
static void update_timer(struct mTiming* timing, void* context, uint32_t late) {
	struct GBTimer* timer = context;
	struct GB* gb = timer->p;
	int32_t speed = 2 - gb->doubleSpeed;
	int32_t time = timer->nextDiv + late;
	uint32_t from = timer->internalDiv;
	uint32_t to = from + time / (GB_DMG_DIV_PERIOD * speed);
	uint32_t period = timer->timaPeriod;
	if (time < 0 || (period & (period - 1)) || (period && passes(from, to, period)) ||
		passes(from, to, 0x200 << gb->doubleSpeed)) {
		load_callback(&libmgba_timer)(timing, timer, late);
		return;
	}
	timer->internalDiv = to;
	gb->memory.io[GB_REG_DIV] = to >> 4;
	int32_t until = 16 - (to & 15);
	if (period && (int32_t) (period - (to & (period - 1))) < until) {
		until = period - (to & (period - 1));
	}
	timer->nextDiv = GB_DMG_DIV_PERIOD * until * speed;
	mTimingSchedule(timing, &timer->event, timer->nextDiv - late);
}

/* The number of sprites on the current line, at most 10: a console does not show more. */
static int count_sprites(const struct GBVideo* video) {
	uint8_t height = GBRegisterLCDCIsObjSize(video->p->memory.io[GB_REG_LCDC]) ? 16 : 8;
	int count = 0;
	for (int i = 0; i < GB_VIDEO_MAX_OBJ; ++i) {
		/* The y position of a sprite counts from 16 lines above the picture. */
		count += (uint8_t) (video->ly + 16 - video->oam.obj[i].y) < height;
	}
	return count < GB_VIDEO_MAX_LINE_OBJ ? count : GB_VIDEO_MAX_LINE_OBJ;
}

/* Ends mode 2, in which the display looks for the sprites of a line, and begins mode 3, in which it draws the line.
 * This change causes no interrupt. */
static void end_mode2(struct mTiming* timing, void* context, uint32_t late) {
	struct GBVideo* video = context;
	struct GBMemory* memory = &video->p->memory;
	video->objMax = count_sprites(video);
	video->x = -(memory->io[GB_REG_SCX] & 7);
	video->dotClock = mTimingCurrentTime(timing) - late + 10 - video->x * 2;
	int32_t length = GB_VIDEO_MODE_3_LENGTH_BASE + video->objMax * 6 - video->x;
	video->mode = 3;
	video->modeEvent.callback = load_callback(&libmgba_mode3);
	video->stat = GBRegisterSTATSetMode(video->stat, 3);
	memory->io[GB_REG_STAT] = video->stat;
	mTimingSchedule(timing, &video->modeEvent, length * 2 - late);
}

void fw_gb_events_begin_frame(struct GB* gb) {
	struct mTimingEvent* event = &gb->timer.event;
	store_callback(&libmgba_timer, event->callback);
	event->callback = update_timer;
}

void fw_gb_events_update(struct GB* gb) {
	struct mTimingEvent* event = &gb->video.modeEvent;
	if (gb->video.mode == 3) {
		store_callback(&libmgba_mode3, event->callback);
	} else if (gb->video.mode == 2 && event->callback != end_mode2) {
		store_callback(&libmgba_mode2, event->callback);
		/* `end_mode2` needs libmgba's function for mode 3, which is not known before the first mode 3. */
		if (load_callback(&libmgba_mode3)) {
			event->callback = end_mode2;
		}
	}
}

void fw_gb_events_end_frame(struct GB* gb) {
	gb->timer.event.callback = load_callback(&libmgba_timer);
	if (gb->video.modeEvent.callback == end_mode2) {
		gb->video.modeEvent.callback = load_callback(&libmgba_mode2);
	}
}

#endif
