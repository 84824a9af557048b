/* The clock of cartridges that have one. It is the host's clock, or a clock that advances with the frames.
 *
 * A clock that advances with the frames is libmgba's RTC_FAKE_EPOCH. Its value is the Unix time in milliseconds at
 * frame 0. mGBA knows this kind of clock, so it can read one from a state. This file adds what libmgba lacks: the clock
 * keeps running across resets, and GBA games, which read the local time, see the same time in every time zone of the
 * host. */
#include "internal.h"

#include <mgba/core/serialize.h>

#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

/* Added to the time zone that a state stores, so that the field is 0 only in a state without a time zone. libmgba
 * leaves this field 0. */
#define ZONE_MARK (1 << 20)

static struct fw_core* self_of(struct mRTCSource* source) {
	struct mRTCGenericSource* rtc = (struct mRTCGenericSource*) source;
	struct fw_clock* clock = (struct fw_clock*) rtc->custom;
	return clock->host;
}

static bool of_frames(const struct fw_core* self) {
	return self->core->rtc.override == RTC_FAKE_EPOCH;
}

/* Milliseconds from frame 0 to frame `frames`. */
static int64_t elapsed(struct mCore* core, uint32_t frames) {
	return frames * (core->frameCycles(core) * 1000LL) / core->frequency(core);
}

/* Corrects the clock after a reset, which sets the frame counter back but must not change the time. */
static void follow(struct fw_core* self) {
	struct mCore* core = self->core;
	uint32_t now = core->frameCounter(core);
	if (now < self->clock.seen) {
		core->rtc.value += elapsed(core, self->clock.seen) - elapsed(core, now);
	}
	self->clock.seen = now;
}

void fw_clock_follow(struct fw_core* self) {
	if (of_frames(self)) {
		follow(self);
	}
}

static int64_t now_of_frames(struct fw_core* self) {
	follow(self);
	return self->core->rtc.value + elapsed(self->core, self->clock.seen);
}

/* GBA games see the host's local time. So for a game that must see the local time of the time zone `zone` at `now`,
 * this function returns the Unix time at which the host has that local time. If that local time is in the hour that the
 * host skips when daylight saving time begins, there is no such Unix time. Then the result is off by an hour. */
static time_t shown(time_t now, int32_t zone) {
	time_t there = now + zone;
	struct tm fields;
	if (!gmtime_r(&there, &fields)) {
		return now;
	}
	fields.tm_isdst = -1;
	time_t here = mktime(&fields);
	return here == (time_t) -1 ? now : here;
}

static time_t unix_time(struct mRTCSource* source) {
	struct fw_core* self = self_of(source);
	if (!of_frames(self)) {
		return time(NULL);
	}
	time_t now = now_of_frames(self) / 1000;
	bool calendar = self->core->platform(self->core) == mPLATFORM_GBA;
	return calendar && self->clock.zone != FW_NO_ZONE ? shown(now, self->clock.zone) : now;
}

static void sample(struct mRTCSource* source) {
	(void) source;
}

static void serialize(struct mRTCSource* source, struct mStateExtdataItem* item) {
	struct fw_core* self = self_of(source);
	fw_clock_follow(self);
	struct mRTCGenericState* state = calloc(1, sizeof(*state));
	*item = (struct mStateExtdataItem) { .size = state ? sizeof(*state) : 0, .data = state, .clean = free };
	if (state) {
		state->type = self->core->rtc.override;
		state->value = self->core->rtc.value;
		state->padding = self->clock.zone == FW_NO_ZONE ? 0 : self->clock.zone + ZONE_MARK;
	}
}

/* Takes the time from a state, if both the core and the state have a clock that advances with the frames. */
static bool deserialize(struct mRTCSource* source, const struct mStateExtdataItem* item) {
	struct fw_core* self = self_of(source);
	struct mRTCGenericState state;
	if (!item->data || item->size < (int32_t) sizeof(state)) {
		return false;
	}
	memcpy(&state, item->data, sizeof(state));
	if (!of_frames(self) || state.type != RTC_FAKE_EPOCH) {
		return true;
	}
	self->core->rtc.value = state.value;
	self->clock.zone = state.padding ? state.padding - ZONE_MARK : FW_NO_ZONE;
	self->clock.seen = self->core->frameCounter(self->core);
	self->clock.loaded = true;
	return true;
}

void fw_clock_init(struct fw_core* self) {
	struct mRTCGenericSource* rtc = &self->core->rtc;
	self->clock = (struct fw_clock) { .host = self, .zone = FW_NO_ZONE };
	rtc->override = RTC_NO_OVERRIDE;
	/* libmgba never calls the functions of `custom`. self_of uses the pointer to find the core. */
	rtc->custom = &self->clock.d;
	rtc->d = (struct mRTCSource) {
		.sample = sample,
		.unixTime = unix_time,
		.serialize = serialize,
		.deserialize = deserialize,
	};
}

int64_t fw_clock_before_load(struct fw_core* self) {
	self->clock.loaded = false;
	return of_frames(self) ? now_of_frames(self) : 0;
}

void fw_clock_after_load(struct fw_core* self, int64_t before, struct mStateExtdata* extra) {
	if (!of_frames(self) || self->clock.loaded) {
		return;
	}
	struct mCore* core = self->core;
	struct mStateExtdataItem made;
	uint64_t microseconds;
	if (extra && mStateExtdataGet(extra, EXTDATA_META_TIME, &made) && made.size >= (int32_t) sizeof(microseconds)) {
		memcpy(&microseconds, made.data, sizeof(microseconds));
		before = microseconds / 1000;
	}
	self->clock.seen = core->frameCounter(core);
	core->rtc.value = before - elapsed(core, self->clock.seen);
}

void fw_clock_set_host(struct fw_core* self) {
	self->core->rtc.override = RTC_NO_OVERRIDE;
	self->core->rtc.value = 0;
}

void fw_clock_set_frames(struct fw_core* self, int64_t now, int32_t zone) {
	struct mCore* core = self->core;
	self->clock.seen = core->frameCounter(core);
	self->clock.zone = zone;
	core->rtc.override = RTC_FAKE_EPOCH;
	core->rtc.value = now - elapsed(core, self->clock.seen);
}

bool fw_clock_get(struct fw_core* self, int64_t* now, int32_t* zone) {
	if (!of_frames(self)) {
		return false;
	}
	*now = now_of_frames(self);
	*zone = self->clock.zone;
	return true;
}

void fw_host_time(int64_t* now, int32_t* zone) {
	struct timeval time = { 0 };
	struct tm fields;
	gettimeofday(&time, NULL);
	*now = time.tv_sec * 1000LL + time.tv_usec / 1000;
	*zone = localtime_r(&time.tv_sec, &fields) ? (int32_t) fields.tm_gmtoff : 0;
}
