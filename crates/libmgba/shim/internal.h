/* Shared by the shim's files; never seen by Rust. */
#ifndef FW_INTERNAL_H
#define FW_INTERNAL_H

/* Before any other header of libmgba: its structs change with these flags. */
#include <mgba/flags.h>

#include <mgba-util/vfs.h>
#include <mgba/core/core.h>
#include <mgba/core/interface.h>
#include <mgba/gba/interface.h>

#include "fw.h"

#ifdef COLOR_16_BIT
#error "this libmgba was built with 16-bit colour; framewire needs 32-bit pixels"
#endif

/* The largest picture any platform draws: a Super Game Boy border. */
enum { FW_STRIDE = 256, FW_ROWS = 224 };

struct fw_scripts;
struct fw_save;
struct fw_cheats;

/* clock.c */
struct fw_clock {
	struct mRTCSource d; /* first: libmgba keeps a pointer to it */
	struct fw_core* host;
	uint32_t seen; /* the frame counter when it was looked at last */
	int32_t zone; /* seconds east of UTC, or FW_NO_ZONE for the host's */
	bool loaded; /* a state has set it */
};

/* sensors.c */
struct fw_sensors {
	struct mRotationSource rotation;
	struct GBALuminanceSource light;
	struct mRumble rumble;
	int32_t values[FW_SENSORS];
	bool rumbles; /* now */
	bool rumbled; /* now or since the last look */
};

struct fw_core {
	struct mCore* core;
	uint32_t* pixels; /* FW_STRIDE * FW_ROWS */
	uint32_t* drawn; /* where the picture is: `pixels`, or what fw_draw_into was given */
	bool undrawn; /* whether frames are run without their pictures */
	bool mixes_all; /* whether sound is mixed that nobody reads */
	bool steps_all; /* whether libmgba runs all instructions of a Game Boy */
	/* sound.c: libmgba's own, during a frame in which sound may be left out; otherwise NULL */
	void (*end_window)(struct mTiming*, void* context, uint32_t late);
	struct fw_scripts* scripts; /* NULL until attached */
	char* path; /* its folder and name are those of saves and state slots */
	char* file; /* the ROM's file, or its archive */
	char* inside; /* its name in the archive, or NULL */
	const void* rom; /* where its bytes were when last looked */
	struct fw_clock clock;
	struct fw_sensors sensors;
	uint32_t layers_off[2]; /* of the picture and of the sound, one bit each */
	struct fw_save* saves; /* newest first */
	uint64_t save_count;
	struct fw_cheats* cheats; /* NULL until there is one */
	/* libmgba's own, which scripts no longer reach; see save.c. */
	bool (*load_save)(struct mCore*, struct VFile*);
	bool (*load_temporary_save)(struct mCore*, struct VFile*);
};

/* buffer.c: copies all of `vf` into a new buffer for Rust and closes it. */
int fw_take_file(struct VFile* vf, uint8_t** out, size_t* len);

/* core.c: for after a script ran, which may have changed the ROM. */
void fw_mind_rom(struct fw_core*);

struct mStateExtdata;

/* clock.c */
void fw_clock_init(struct fw_core*);
/* For after each frame and reset. */
void fw_clock_follow(struct fw_core*);
/* The time of a clock of frames before a state is loaded; and for after that: the clock goes on from the state's time, from
 * when the state was made, or, where `extra` does not say or is NULL, from `before`. */
int64_t fw_clock_before_load(struct fw_core*);
void fw_clock_after_load(struct fw_core*, int64_t before, struct mStateExtdata* extra);

/* save.c */
void fw_saves_init(struct fw_core*);
/* For before a reset, or another save or ROM. */
void fw_saves_settle(struct fw_core*);
/* For after a ROM was put in, with which libmgba lets go of all saves. */
void fw_saves_dropped(struct fw_core*);
/* For after the core is gone. */
void fw_saves_free(struct fw_core*);
/* A script of this core runs from here on; gives the one before, to be set again. */
struct fw_core* fw_saves_enter(struct fw_core*);

/* cheats.c: for after the core is gone */
void fw_cheats_free(struct fw_core*);

/* sensors.c */
void fw_sensors_init(struct fw_core*);
/* For after a reset. */
void fw_sensors_reset(struct fw_core*);

/* media.c */
void fw_audio_setup(struct mCore*);
/* For after the first reset, when libmgba has chosen what draws. */
void fw_picture_setup(struct mCore*);

/* sound.c: for around each frame */
void fw_sound_begin_frame(struct fw_core*);
void fw_sound_end_frame(struct fw_core*);

struct GB;

/* gb_events.c: for around each frame, and before events */
void fw_gb_events_begin_frame(struct GB*);
void fw_gb_events_look(struct GB*);
void fw_gb_events_end_frame(struct GB*);

/* sm83.c: runs until the end of the frame */
void fw_run_processor(struct fw_core*);

/* script.c; both do nothing without scripts */
void fw_scripts_trigger(struct fw_core*, const char* callback);
void fw_scripts_free(struct fw_core*);

#endif
