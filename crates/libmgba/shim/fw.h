/* The flat C interface that the Rust side declares in src/sys/ffi.rs.
 *
 * libmgba's `struct mCore` is a table of function pointers. Its layout depends on the version of libmgba and on its
 * build flags. Only the C files here, which are compiled against libmgba's headers, use that layout. The Rust side does
 * not.
 *
 * Rules for every function here: only one thread at a time uses a `struct fw_core*`; strings are NUL-terminated; if a
 * function returns a buffer through a `uint8_t**`, the caller frees the buffer with fw_free. */
#ifndef FW_H
#define FW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fw_core;

/* Keep in step with `Status` in src/sys/status.rs. */
enum fw_status {
	FW_OK = 0,
	FW_NO_MEMORY,
	FW_NOT_A_ROM,
	FW_TRUNCATED,
	FW_OTHER_PLATFORM,
	FW_FAILED, /* any other failure; the Rust side reports which action failed */
	FW_STATE_OTHER_PLATFORM,
	FW_STATE_OTHER_GAME,
	FW_NO_SCRIPTING,
	FW_SCRIPT_FAILED,
	FW_CHEAT_LINE, /* libmgba does not accept the code */
	FW_CHEAT_INCOMPLETE, /* another line is needed */
	FW_CHEAT_ADDRESS, /* `value` (of struct fw_cheat_problem) is an address to which the code cannot write */
	FW_CHEAT_OUTSIDE, /* `value` is an address outside the ROM */
	FW_CHEAT_OTHER_GAME, /* `value` is the byte that the code expects in the ROM, which has another byte there */
	FW_NOT_A_BIOS, /* not a BIOS of this console */
};

/* ---- core.c: opens, runs and closes cores; keys; facts about the game ---- */

/* A ROM. The strings and bytes are needed only during the call. */
struct fw_rom {
	const char* path; /* saves and state slots are in its folder and have its name */
	const char* file; /* the ROM's file, or its archive */
	const char* inside; /* the game's name in the archive; NULL if it is the only one, or there is no archive */
	const uint8_t* bytes;
	size_t size; /* up to 64 MiB */
};

/* The settings of the emulated console. */
struct fw_console {
	const uint8_t* bios; /* NULL for libmgba's own replacement, which starts the game at once */
	size_t bios_size;
	const char* model; /* model of a Game Boy, as mGBA names it; NULL to choose it from the ROM */
	bool no_borders; /* no border around the picture of a Super Game Boy */
	/* For a Game Boy without colours: 4 colours for the background and 8 for objects, as 0xRRGGBB; or NULL. */
	const uint32_t* palette;
	const char* save_type; /* save memory of a GBA game, as mGBA names it; NULL to detect it; never freed */
};
#define FW_PALETTE 12

int fw_open(const struct fw_rom*, const struct fw_console*, struct fw_core** out);
int fw_load_file(struct fw_core*, const struct fw_rom*);
/* Takes over the type of save memory of another core, for the same games as there, from the next reset on. */
void fw_adopt_save_type(struct fw_core*, const struct fw_core* other);
void fw_close(struct fw_core*);
void fw_reset(struct fw_core*);
void fw_run_frame(struct fw_core*);
/* Whether frames are drawn from now on. If not, the picture stays that of an earlier frame. */
void fw_set_drawing(struct fw_core*, bool draws);
/* Whether sound is mixed even if nobody reads it; by default, it is not. */
void fw_mix_all_sound(struct fw_core*, bool all);
/* Whether libmgba itself runs all instructions of a Game Boy, cycle by cycle; by default, sm83.c runs most of them. */
void fw_step_all_cycles(struct fw_core*, bool all);
/* Calls the scripts' `frame` callbacks. Must be called after each frame. */
void fw_frame_over(struct fw_core*);
/* Runs one instruction. If the processor waits for an interrupt, it waits at most until the end of the frame. */
void fw_step(struct fw_core*);

uint32_t fw_keys(struct fw_core*);
void fw_set_keys(struct fw_core*, uint32_t keys);
void fw_add_keys(struct fw_core*, uint32_t keys);
void fw_clear_keys(struct fw_core*, uint32_t keys);

int fw_platform(const struct fw_core*);
uint32_t fw_frame_counter(const struct fw_core*);
int32_t fw_frame_cycles(const struct fw_core*);
int32_t fw_frequency(const struct fw_core*);
/* Clock cycles since the last reset. A loaded state sets the number to the one in the state. */
uint64_t fw_cycles(const struct fw_core*);
uint32_t fw_crc32(const struct fw_core*);
size_t fw_rom_size(const struct fw_core*);
/* Whether a script has replaced the ROM that fw_open or fw_load_file loaded. */
bool fw_loaded_by_script(const struct fw_core*);
/* fw_title and fw_code fill `out` (at least FW_NAME_SIZE bytes) and end it with a NUL. */
#define FW_NAME_SIZE 32
void fw_title(const struct fw_core*, char* out);
void fw_code(const struct fw_core*, char* out);
const char* fw_version(void);

/* ---- buffer.c ---- */

void fw_free(void*);
/* Returns free memory to the system, if the C library supports that. */
void fw_release_memory(void);

/* ---- memory.c: bus, memory domains, registers ---- */

uint32_t fw_read8(struct fw_core*, uint32_t address);
uint32_t fw_read16(struct fw_core*, uint32_t address);
uint32_t fw_read32(struct fw_core*, uint32_t address);
void fw_write8(struct fw_core*, uint32_t address, uint8_t value);
void fw_write16(struct fw_core*, uint32_t address, uint16_t value);
void fw_write32(struct fw_core*, uint32_t address, uint32_t value);
void fw_read_range(struct fw_core*, uint32_t address, uint8_t* out, size_t len);
void fw_write_range(struct fw_core*, uint32_t address, const uint8_t* data, size_t len);

/* The data for addressing a memory domain, from struct mCoreMemoryBlock. */
struct fw_block {
	size_t id;
	uint32_t start;
	uint32_t end;
	uint32_t size;
	uint32_t segment_start;
	bool writable;
};

struct fw_block_names {
	const char* internal_name;
	const char* short_name;
};

/* Returns false if there is no domain with this index. The names are never freed. */
bool fw_domain(const struct fw_core*, size_t index, struct fw_block* out, struct fw_block_names* names);
uint32_t fw_domain_read(struct fw_core*, const struct fw_block*, uint32_t offset, unsigned width);
void fw_domain_write(struct fw_core*, const struct fw_block*, uint32_t offset, unsigned width, uint32_t value);
void fw_domain_read_range(struct fw_core*, const struct fw_block*, uint32_t offset, uint8_t* out, size_t len);
/* The memory of a domain and its size in bytes, or NULL. The pointer is valid until a call changes the core. */
const uint8_t* fw_domain_memory(const struct fw_core*, const struct fw_block*, size_t* size);

/* Returns NULL if there is no register with this index. */
const char* fw_register_name(const struct fw_core*, size_t index);
bool fw_read_register(const struct fw_core*, const char* name, int32_t* out);
bool fw_write_register(struct fw_core*, const char* name, int32_t value);

/* ---- state.c: savestates and battery saves ---- */

int fw_state_save(struct fw_core*, int flags, uint8_t** out, size_t* len);
/* Together with SAVESTATE_SAVEDATA: the save in the state becomes the cartridge's save, even if the game uses the save
 * of a state that was loaded earlier. */
#define FW_KEEP_SAVE 0x100
int fw_state_load(struct fw_core*, const uint8_t* data, size_t len, int flags);
int fw_save_get(struct fw_core*, uint8_t** out, size_t* len);

/* ---- clock.c: the clock of cartridges that have one ---- */

/* The value of `zone` that means the host's time zone. */
#define FW_NO_ZONE INT32_MIN
/* Games see the host's clock. */
void fw_clock_set_host(struct fw_core*);
/* Games see a clock that advances with the frames. `now` is its present Unix time in milliseconds, `zone` its time zone
 * in seconds east of UTC. */
void fw_clock_set_frames(struct fw_core*, int64_t now, int32_t zone);
/* Returns false if games see the host's clock. */
bool fw_clock_get(struct fw_core*, int64_t* now, int32_t* zone);
void fw_host_time(int64_t* now, int32_t* zone);

/* ---- save.c: the files of battery saves, in memory ---- */

struct fw_save_view {
	uint64_t id;
	const uint8_t* memory;
	size_t size;
	const char* path; /* the file from which a script loaded it, or NULL */
	bool open; /* whether the game can still change it */
};

int fw_save_load(struct fw_core*, const uint8_t* data, size_t len, bool temporary, uint64_t* id);
/* Removes the save from the cartridge. On a Game Boy, libmgba then appends the state of the cartridge's clock to it. */
void fw_save_unload(struct fw_core*);
/* The index counts only saves that are not temporary. Returns false if there is no save with this index. The view is
 * valid until a call changes the core. */
bool fw_save_view(const struct fw_core*, size_t index, struct fw_save_view* out);
/* The id of the cartridge's save; 0 if it has none, or if a temporary save hides it. */
uint64_t fw_save_in_use(const struct fw_core*);
/* Sets whether a state that a script loads with its save leaves the cartridge's save as it is while the save of another
 * state hides it. */
void fw_save_protect(struct fw_core*, bool protects);
/* Frees a save that is no longer open. */
void fw_save_forget(struct fw_core*, uint64_t id);
/* The name of the game's files without the extension. */
const char* fw_base_name(const struct fw_core*);

/* ---- cheats.c ---- */

struct fw_cheat_codes {
	const char* name;
	const char* directive; /* the encryption, as mGBA's cheat files name it, or NULL to detect it */
	bool keeps_encryption; /* whether a cheat without a directive has the encryption of the cheat before it */
	const char* const* lines;
	size_t count;
	bool enabled;
};

struct fw_cheat_problem {
	size_t line; /* counted from 0 */
	uint32_t value;
};

/* Adds a cheat after the others. On failure, fills in `problem` and adds no cheat. */
int fw_cheat_add(struct fw_core*, const struct fw_cheat_codes*, struct fw_cheat_problem* problem);
/* Returns the number of cheats. If a script has loaded a game (even the same one) or a state with cheats, this function
 * removes all cheats, including those of the state, and returns 0. */
size_t fw_cheats_count(struct fw_core*);
/* These two do nothing if there is no cheat with this index. */
void fw_cheat_enable(struct fw_core*, size_t index, bool enabled);
void fw_cheat_remove(struct fw_core*, size_t index);
void fw_cheats_clear(struct fw_core*);

/* ---- media.c: picture and sound ---- */

/* 32-bit pixels in memory order red, green, blue, unused; `stride` in pixels. */
const uint32_t* fw_frame(const struct fw_core*, unsigned* width, unsigned* height, size_t* stride);
/* Draws into `pixels` from now on; if it is NULL, into the core's own memory again. `pixels` has FW_PICTURE pixels, and
 * must be valid until the next call of this function. */
#define FW_PICTURE (256 * 224)
void fw_draw_into(struct fw_core*, uint32_t* pixels);
int fw_screenshot(struct fw_core*, uint8_t** out, size_t* len);
unsigned fw_audio_rate(const struct fw_core*);
size_t fw_audio_available(struct fw_core*);
/* Moves at most `count` stereo pairs to `out` (2 * count values). */
size_t fw_audio_read(struct fw_core*, int16_t* out, size_t count);

/* A layer of the picture or a channel of the sound. The strings are never freed. */
struct fw_layer {
	const char* name;
	const char* title;
	bool enabled;
};

/* Returns false if there is no layer or channel with this index. */
bool fw_layer(const struct fw_core*, bool sound, size_t index, struct fw_layer* out);
/* Does nothing if there is no layer or channel with this index. A layer changes in the next frame that is drawn. */
void fw_layer_enable(struct fw_core*, bool sound, size_t index, bool enabled);

/* ---- sensors.c ---- */

enum fw_sensor { FW_TILT_X, FW_TILT_Y, FW_GYRO, FW_LIGHT, FW_SENSORS };

/* Tilt and gyro accept all values; 0 is at rest. Light accepts 0 (dark) to 255. */
void fw_sensor_set(struct fw_core*, unsigned sensor, int32_t value);
/* Whether the cartridge rumbles now, or has rumbled since the last call. */
bool fw_take_rumble(struct fw_core*);

/* ---- log.c: libmgba's own log ---- */

/* Must be called before the first core is opened. */
void fw_log_off(void);

/* ---- script.c: Lua ---- */

typedef void (*fw_console_fn)(void* user, int level, const char* message);
int fw_scripts_attach(struct fw_core*, fw_console_fn, void* user);
/* Moves the scripts of `from` to `to`. The earlier scripts of `to` are ended. */
void fw_scripts_move(struct fw_core* to, struct fw_core* from);
/* Does nothing if the core has no scripts. */
void fw_scripts_detach(struct fw_core*);
/* The caller frees `error`, which may be NULL, with fw_free. */
int fw_script_run(struct fw_core*, const char* name, const uint8_t* source, size_t len, char** error);

#endif
