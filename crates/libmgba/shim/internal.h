/* Declarations for the shim's files. The Rust side does not use them. */
#ifndef FW_INTERNAL_H
#define FW_INTERNAL_H

/* Must come before all other headers of libmgba, whose structs depend on these flags. */
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

/* clock.c */
struct fw_clock {
	struct mRTCSource d; /* must be the first member; libmgba keeps a pointer to it */
	struct fw_core* host;
	uint32_t seen; /* the frame counter at the last update */
	int32_t zone; /* seconds east of UTC, or FW_NO_ZONE for the time zone of this machine */
	bool loaded; /* whether a state has set the clock */
};

/* cheats.c */
struct fw_cheats {
	struct fw_cheat* all;
	size_t count;
	uint32_t game; /* the CRC-32 of the ROM that they are for */
};

/* sensors.c */
struct fw_sensors {
	struct mRotationSource rotation;
	struct GBALuminanceSource light;
	struct mRumble rumble;
	int32_t values[FW_SENSORS];
	bool rumbles; /* whether it rumbles now */
	bool rumbled; /* whether it rumbles now, or has rumbled since the last fw_take_rumble */
};

struct fw_core {
	struct mCore* core;
	uint32_t* pixels; /* FW_STRIDE * FW_ROWS */
	uint32_t* drawn; /* where the picture is: `pixels`, or the memory from fw_draw_into */
	bool undrawn; /* whether frames are run without drawing */
	bool mixes_all; /* whether sound is mixed even if nobody reads it */
	bool steps_all; /* whether libmgba runs all instructions of a Game Boy, and sm83.c none */
	/* sound.c: libmgba's own function while it is replaced, during a frame; otherwise NULL */
	void (*end_window)(struct mTiming*, void* context, uint32_t late);
	struct fw_scripts* scripts; /* NULL until attached */
	char* file; /* the ROM's file, or its archive */
	char* inside; /* the ROM's name in the archive, or NULL */
	const void* rom; /* the address of the ROM's bytes at the last check */
	uint32_t rom_crc32; /* the ROM's CRC-32 at the last check; writes to the ROM do not change it */
	bool loaded_by_script; /* whether a script has replaced the ROM */
	/* the type of save memory from the settings, or NULL, and the code of the games that have it */
	const char* save_type;
	char save_type_code[5];
	struct fw_clock clock;
	struct fw_sensors sensors;
	uint32_t layers_off[2]; /* a bit for each layer that is off: of the picture, then of the sound */
	struct fw_save* saves; /* newest first */
	uint64_t save_count;
	struct fw_cheats cheats;
	/* libmgba's own functions. Scripts call replacements for them; see save.c. */
	bool (*load_save)(struct mCore*, struct VFile*);
	bool (*load_temporary_save)(struct mCore*, struct VFile*);
	bool (*restore_save)(struct mCore*, const void*, size_t, bool writeback);
	bool protects_save; /* see fw_save_protect */
};

/* buffer.c: copies all of `vf` into a new buffer for Rust, and closes `vf`. */
int fw_take_file(struct VFile* vf, uint8_t** out, size_t* len);

/* core.c: called after a script has run, because it may have changed the ROM. */
void fw_check_rom(struct fw_core*);

struct mStateExtdata;

/* clock.c */
void fw_clock_init(struct fw_core*);
/* Called after each frame, and before and after each reset. */
void fw_clock_follow(struct fw_core*);
/* Called before and after a state is loaded. They have an effect only on a clock that advances with the frames. The
 * first returns the clock's time, which the second gets as `before`. If the state has such a clock, loading the state
 * has set the time. Otherwise, the second sets the time: to the time at which the state was made, if `extra` has it,
 * and else to `before`. `extra` can be NULL. */
int64_t fw_clock_before_load(struct fw_core*);
void fw_clock_after_load(struct fw_core*, int64_t before, struct mStateExtdata* extra);

/* save.c */
void fw_saves_init(struct fw_core*);
/* If the game has changed the save of a loaded state, makes it the cartridge's save at once; with `always`, even if the
 * game has not changed it. Called before a reset, before another ROM is inserted, before the cartridge's own save is
 * replaced or removed, and before a state is loaded with FW_KEEP_SAVE or, unless the save is protected, by a script. */
void fw_saves_settle(struct fw_core*, bool always);
/* Inserts an empty temporary save, so that libmgba closes the save that is in use. Called before another ROM is
 * inserted, and before the core is freed. */
void fw_saves_cover(struct fw_core*);
/* Called after a ROM was inserted. Then libmgba no longer uses the earlier saves. */
void fw_saves_dropped(struct fw_core*);
/* Called after the core was freed. */
void fw_saves_free(struct fw_core*);
/* Called when a script of this core starts to run. Returns the core whose script ran before. When the script has ended,
 * the caller calls this again with that core. */
struct fw_core* fw_saves_enter(struct fw_core*);

/* state.c */
void fw_states_init(struct mCore*);

/* cheats.c: called after the core was freed */
void fw_cheats_free(struct fw_core*);

/* sensors.c */
void fw_sensors_init(struct fw_core*);
/* Called after a reset. */
void fw_sensors_reset(struct fw_core*);

/* media.c */
void fw_audio_setup(struct mCore*);
/* Called after the first reset, when libmgba has chosen its renderer. */
void fw_picture_setup(struct mCore*);

/* sound.c: called before and after each frame */
void fw_sound_begin_frame(struct fw_core*);
void fw_sound_end_frame(struct fw_core*);

struct GB;

/* gb_events.c: called before and after each frame */
void fw_gb_events_begin_frame(struct GB*);
void fw_gb_events_end_frame(struct GB*);
/* Called within a frame, each time before events are handled. */
void fw_gb_events_update(struct GB*);

/* sm83.c: runs until the end of the frame */
void fw_run_processor(struct fw_core*);

/* script.c; does nothing if the core has no scripts */
void fw_scripts_trigger(struct fw_core*, const char* callback);

#endif
