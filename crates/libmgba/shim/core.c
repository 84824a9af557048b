/* Opens and runs games, and returns facts about them. */
#include "internal.h"

#include <mgba/core/config.h>
#include <mgba/core/directories.h>
#include <mgba/core/version.h>
#include <mgba/internal/arm/arm.h>
#include <mgba/internal/gb/gb.h>
#include <mgba/internal/gba/gba.h>
#include <mgba/internal/sm83/sm83.h>

#define GBA_HEADER_SIZE 0xC0
#define GB_HEADER_END 0x150

/* libmgba may read past the end of a tiny ROM, by at most the size of a bank or of a
 * header. So the memory of a ROM always has at least this size. */
#define MIN_ROM_CAPACITY ((size_t) 0x10000)

static bool is_rom(struct VFile* vf) {
	return mCoreIsCompatible(vf) != mPLATFORM_NONE;
}

/* Checks and copies the ROM in `file`, and closes the file. The file is not mapped, because a
 * developer who rebuilds the ROM in place would then kill this process with SIGBUS. */
static int copy_rom(struct VFile* file, struct VFile** out, enum mPlatform* platform) {
	int status = FW_OK;
	struct VFile* rom = NULL;
	*platform = mCoreIsCompatible(file);
	ssize_t size = file->size(file);
	if (*platform == mPLATFORM_NONE) {
		status = FW_NOT_A_ROM;
	} else if (size < (*platform == mPLATFORM_GBA ? GBA_HEADER_SIZE : GB_HEADER_END)) {
		status = FW_TRUNCATED;
	} else {
		size_t capacity = (size_t) size < MIN_ROM_CAPACITY ? MIN_ROM_CAPACITY : (size_t) size;
		rom = VFileMemChunk(NULL, capacity);
		void* memory = rom ? rom->map(rom, capacity, MAP_WRITE) : NULL;
		if (!memory) {
			status = FW_NO_MEMORY;
		} else {
			file->seek(file, 0, SEEK_SET);
			if (file->read(file, memory, size) != size) {
				status = FW_FAILED;
			}
			rom->unmap(rom, memory, capacity);
			rom->truncate(rom, size);
			rom->seek(rom, 0, SEEK_SET);
		}
	}
	file->close(file);
	if (status != FW_OK && rom) {
		rom->close(rom);
		rom = NULL;
	}
	*out = rom;
	return status;
}

static int take_rom(const struct fw_rom* given, struct VFile** out, enum mPlatform* platform) {
	struct VFile* file = VFileFromConstMemory(given->bytes, given->size);
	return file ? copy_rom(file, out, platform) : FW_NO_MEMORY;
}

/* Reads the ROM of this core again from its file. Returns NULL if the file no longer has a ROM for this console. */
static struct VFile* read_again(struct fw_core* self) {
	struct VDir* archive = VDirOpenArchive(self->file);
	struct VFile* file;
	if (!archive) {
		file = VFileOpen(self->file, O_RDONLY);
	} else if (self->inside) {
		file = archive->openFile(archive, self->inside, O_RDONLY);
	} else {
		file = VDirFindFirst(archive, is_rom);
	}
	struct VFile* rom = NULL;
	enum mPlatform platform;
	if (file && copy_rom(file, &rom, &platform) == FW_OK && platform != self->core->platform(self->core)) {
		rom->close(rom);
		rom = NULL;
	}
	if (archive) {
		archive->close(archive);
	}
	return rom;
}

static const void* rom_memory(struct mCore* core) {
	const struct mCoreMemoryBlock* blocks;
	size_t count = core->listMemoryBlocks(core, &blocks);
	for (size_t i = 0; i < count; ++i) {
		if (!strcmp(blocks[i].internalName, "cart0")) {
			size_t size;
			return core->getMemoryBlock(core, blocks[i].id, &size);
		}
	}
	return NULL;
}

/* Makes a GBA's processor fetch instructions from the present ROM. libmgba keeps a
 * pointer into the earlier ROM until the processor jumps out of the cartridge. */
static void refetch(struct mCore* core) {
	if (core->platform(core) != mPLATFORM_GBA) {
		return;
	}
	uint32_t pc = 0;
	uint32_t cpsr = 0;
	core->readRegister(core, "pc", &pc);
	core->readRegister(core, "cpsr", &cpsr);
	if (pc < 0x08000000 || pc >= 0x0E000000) {
		return;
	}
	/* pc is one instruction ahead of the next instruction. The pointer is set only
	 * by a jump from another region, such as the RAM at 0x03000000. */
	bool thumb = cpsr & 0x20;
	pc -= thumb ? 2 : 4;
	const uint32_t elsewhere = 0x03000000;
	core->writeRegister(core, "pc", &elsewhere);
	core->writeRegister(core, "pc", &pc);
}

/* Closes the core's ROM. loadROM does the same, but a ROM that a script has loaded from an archive must be closed before
 * the archive, which enter_folder closes. */
static void remove_rom(struct mCore* core) {
	if (core->platform(core) == mPLATFORM_GBA) {
		GBAUnloadROM(core->board);
	} else {
		GBUnloadROM(core->board);
	}
}

/* Sets the core's folder for saves and states to `folder`, and the name of these files to `name`. */
static void enter_folder(struct mCore* core, struct VDir* folder, const char* name) {
	/* Without this, libmgba keeps the folder of the earlier ROM. */
	mDirectorySetDetachBase(&core->dirs);
	strcpy(core->dirs.baseName, name);
	mDirectorySetAttachBase(&core->dirs, folder);
}

/* Gives `rom`, a copy of `given`, to the core. */
static int insert_rom(struct fw_core* self, const struct fw_rom* given, struct VFile* rom) {
	struct mCore* core = self->core;
	char* file = strdup(given->file);
	char* inside = given->inside ? strdup(given->inside) : NULL;
	bool complete = file && (inside || !given->inside);
	bool loaded = false;
	char path[PATH_MAX];
	char name[PATH_MAX];
	separatePath(given->path, path, name, NULL);
	struct VDir* folder = complete ? VDirOpen(path) : NULL;
	if (folder) {
		fw_saves_settle(self, false);
		fw_saves_cover(self);
		fw_cheats_clear(self);
		remove_rom(core);
		enter_folder(core, folder, name);
		loaded = core->loadROM(core, rom);
	}
	if (!loaded) {
		free(file);
		free(inside);
		rom->close(rom);
		return complete ? FW_FAILED : FW_NO_MEMORY;
	}
	free(self->file);
	free(self->inside);
	self->file = file;
	self->inside = inside;
	self->rom = rom_memory(core);
	self->rom_crc32 = fw_crc32(self);
	self->loaded_by_script = false;
	fw_saves_dropped(self);
	return FW_OK;
}

/* Called after a script has run, because scripts can call emu:loadFile(). If a script has replaced the ROM, the
 * processor must fetch from the new one. If the path was bad, the core has no ROM. libmgba would crash when such a core
 * runs or is read, so a ROM is inserted again. The address alone does not show whether a script has loaded a ROM: a
 * write to the ROM moves it, and a new ROM can get the address of the old one. */
void fw_check_rom(struct fw_core* self) {
	struct mCore* core = self->core;
	const void* now = rom_memory(core);
	bool same = now && fw_crc32(self) == self->rom_crc32;
	if (same && now == self->rom) {
		return;
	}
	if (!now) {
		struct VFile* rom = read_again(self);
		if (!rom) {
			rom = VFileMemChunk(NULL, MIN_ROM_CAPACITY);
		}
		if (rom && !core->loadROM(core, rom)) {
			rom->close(rom);
		}
	}
	refetch(core);
	self->rom = rom_memory(core);
	self->rom_crc32 = fw_crc32(self);
	self->loaded_by_script |= !same;
}

/* Sets the settings of a core. mCoreLoadConfig is not used, because it reads the user's own mGBA configuration, and the
 * same ROM must behave the same on every machine. */
static void configure(struct mCore* core, const struct fw_console* console) {
	struct mCoreOptions options = {
		.skipBios = !console->bios,
		.useBios = console->bios,
		.volume = 0x100,
		.fpsTarget = 60.f,
	};
	mCoreInitConfig(core, NULL);
	mCoreConfigLoadDefaults(&core->config, &options);
	/* Idle loops run like other code. libmgba does not try to detect and skip them. */
	mCoreConfigSetDefaultValue(&core->config, "idleOptimization", "ignore");
	/* Clients may hold left and right at the same time. */
	mCoreConfigSetDefaultIntValue(&core->config, "allowOpposingDirections", 1);
	if (console->model) {
		/* mGBA has a setting for each kind of game. */
		static const char* const keys[] = { "gb.model", "sgb.model", "cgb.model", "cgb.hybridModel", "cgb.sgbModel" };
		for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); ++i) {
			mCoreConfigSetDefaultValue(&core->config, keys[i], console->model);
		}
	}
	if (console->no_borders) {
		mCoreConfigSetDefaultIntValue(&core->config, "sgb.borders", 0);
	}
	for (int i = 0; console->palette && i < FW_PALETTE; ++i) {
		char key[16];
		snprintf(key, sizeof(key), "gb.pal[%i]", i);
		mCoreConfigSetDefaultIntValue(&core->config, key, console->palette[i]);
	}
	mCoreLoadForeignConfig(core, &core->config);
}

/* Sets the type of save memory. libmgba looks up this setting by the game's code at each reset. */
static void set_save_type(struct fw_core* self) {
	if (self->save_type) {
		char section[16];
		snprintf(section, sizeof(section), "override.%s", self->save_type_code);
		ConfigurationSetValue(mCoreConfigGetOverrides(&self->core->config), section, "savetype", self->save_type);
	}
}

void fw_adopt_save_type(struct fw_core* self, const struct fw_core* other) {
	self->save_type = other->save_type;
	memcpy(self->save_type_code, other->save_type_code, sizeof(self->save_type_code));
	set_save_type(self);
}

/* Gives the core a copy of the BIOS, which libmgba keeps. */
static int insert_bios(struct mCore* core, const struct fw_console* console) {
	if (!console->bios) {
		return FW_OK;
	}
	const size_t gba_size = 0x4000;
	struct VFile* bios = VFileMemChunk(console->bios, console->bios_size);
	if (!bios) {
		return FW_NO_MEMORY;
	}
	bool fits = core->platform(core) != mPLATFORM_GBA || console->bios_size == gba_size;
	if (!fits || !core->loadBIOS(core, bios, 0)) {
		bios->close(bios);
		return FW_NOT_A_BIOS;
	}
	return FW_OK;
}

int fw_open(const struct fw_rom* given, const struct fw_console* console, struct fw_core** out) {
	enum mPlatform platform;
	struct VFile* rom;
	int status = take_rom(given, &rom, &platform);
	if (status != FW_OK) {
		return status;
	}
	struct fw_core* self = calloc(1, sizeof(*self));
	uint32_t* pixels = calloc((size_t) FW_STRIDE * FW_ROWS, sizeof(*pixels));
	struct mCore* core = self && pixels ? mCoreCreate(platform) : NULL;
	if (!core || !core->init(core)) {
		free(core);
		free(pixels);
		free(self);
		rom->close(rom);
		return FW_NO_MEMORY;
	}
	self->core = core;
	self->pixels = pixels;
	self->drawn = pixels;
	fw_clock_init(self);
	configure(core, console);
	fw_states_init(core);
	fw_saves_init(self); /* keeps the functions that fw_states_init has replaced */
	fw_sensors_init(self);
	core->setVideoBuffer(core, (void*) pixels, FW_STRIDE);
	fw_audio_setup(core);
	status = insert_rom(self, given, rom);
	if (status == FW_OK) {
		if (platform == mPLATFORM_GBA) {
			const size_t code = 0xAC;
			memcpy(self->save_type_code, (const char*) rom_memory(core) + code, sizeof(self->save_type_code) - 1);
			self->save_type = console->save_type;
			set_save_type(self);
		}
		status = insert_bios(core, console);
	}
	if (status != FW_OK) {
		fw_close(self);
		return status;
	}
	core->reset(core);
	fw_picture_setup(core);
	*out = self;
	return FW_OK;
}

int fw_load_file(struct fw_core* self, const struct fw_rom* given) {
	enum mPlatform platform;
	struct VFile* rom;
	/* The file is checked completely before the running game is removed. */
	int status = take_rom(given, &rom, &platform);
	if (status != FW_OK) {
		return status;
	}
	if (platform != self->core->platform(self->core)) {
		rom->close(rom);
		return FW_OTHER_PLATFORM;
	}
	status = insert_rom(self, given, rom);
	if (status == FW_OK) {
		refetch(self->core);
	}
	return status;
}

void fw_close(struct fw_core* self) {
	fw_scripts_detach(self);
	/* fw_saves_cover makes libmgba close the save that is in use. Without a ROM, there is none. */
	if (self->file) {
		fw_saves_cover(self);
	}
	mCoreConfigDeinit(&self->core->config);
	self->core->deinit(self->core);
	fw_saves_free(self);
	fw_cheats_free(self);
	free(self->file);
	free(self->inside);
	free(self->pixels);
	free(self);
}

void fw_reset(struct fw_core* self) {
	fw_clock_follow(self);
	fw_saves_settle(self, false);
	self->core->reset(self->core);
	fw_sensors_reset(self);
	fw_clock_follow(self);
	fw_scripts_trigger(self, "reset");
}

/* Runs a frame without drawing its picture, which takes much less time. The console is in the same state afterwards,
 * because its state does not depend on the renderer. The exception is a Super Game Boy, which gets colours and borders
 * as pictures. For that console, the function returns false and does nothing. After finishFrame, the next picture
 * begins in the same way as after a frame that was drawn. */
static bool run_undrawn(struct fw_core* self) {
	struct mCore* core = self->core;
	if (core->platform(core) == mPLATFORM_GB) {
		struct GB* gb = core->board;
		if (gb->model & GB_MODEL_SGB) {
			return false;
		}
		gb->video.frameskipCounter = 1;
		fw_run_processor(self);
		gb->video.frameskipCounter = 0;
		gb->video.renderer->finishFrame(gb->video.renderer);
	} else {
		struct GBA* gba = core->board;
		gba->video.frameskipCounter = 1;
		fw_run_processor(self);
		gba->video.frameskipCounter = 0;
		gba->video.renderer->finishFrame(gba->video.renderer);
	}
	return true;
}

void fw_run_frame(struct fw_core* self) {
	fw_sound_begin_frame(self);
	if (!self->undrawn || !run_undrawn(self)) {
		fw_run_processor(self);
	}
	fw_sound_end_frame(self);
	fw_clock_follow(self);
}

void fw_set_drawing(struct fw_core* self, bool draws) {
	self->undrawn = !draws;
}

void fw_frame_over(struct fw_core* self) {
	fw_scripts_trigger(self, "frame");
}

static bool is_halted(struct mCore* core) {
	if (core->platform(core) == mPLATFORM_GB) {
		return ((struct SM83Core*) core->cpu)->halted;
	}
	return ((struct ARMCore*) core->cpu)->halted;
}

/* libmgba's own step returns only after an instruction. If the processor waits for an interrupt that never comes,
 * libmgba's step never returns. So while the processor waits, this function runs only until the end of the frame. */
void fw_step(struct fw_core* self) {
	struct mCore* core = self->core;
	uint32_t frame = core->frameCounter(core);
	while (is_halted(core)) {
		core->runLoop(core);
		if (core->frameCounter(core) != frame) {
			return;
		}
	}
	if (core->platform(core) == mPLATFORM_GB) {
		struct SM83Core* cpu = core->cpu;
		do {
			SM83Tick(cpu);
		} while (cpu->executionState != SM83_CORE_FETCH && !cpu->halted);
	} else {
		core->step(core);
	}
}

const char* fw_base_name(const struct fw_core* self) {
	return self->core->dirs.baseName;
}

uint32_t fw_keys(struct fw_core* self) {
	return self->core->getKeys(self->core);
}

/* If the keys are the same as before, this function does nothing: libmgba would raise the keypad interrupt of a GBA game
 * that waits for one of them. */
void fw_set_keys(struct fw_core* self, uint32_t keys) {
	if (keys != fw_keys(self)) {
		self->core->setKeys(self->core, keys);
	}
}

void fw_add_keys(struct fw_core* self, uint32_t keys) {
	fw_set_keys(self, fw_keys(self) | keys);
}

void fw_clear_keys(struct fw_core* self, uint32_t keys) {
	fw_set_keys(self, fw_keys(self) & ~keys);
}

int fw_platform(const struct fw_core* self) {
	return self->core->platform(self->core);
}

uint32_t fw_frame_counter(const struct fw_core* self) {
	return self->core->frameCounter(self->core);
}

int32_t fw_frame_cycles(const struct fw_core* self) {
	return self->core->frameCycles(self->core);
}

int32_t fw_frequency(const struct fw_core* self) {
	return self->core->frequency(self->core);
}

/* libmgba counts half cycles of a Game Boy, at both speeds of the processor. */
uint64_t fw_cycles(const struct fw_core* self) {
	uint64_t time = mTimingGlobalTime(self->core->timing);
	return fw_platform(self) == mPLATFORM_GB ? time >> 1 : time;
}

uint32_t fw_crc32(const struct fw_core* self) {
	uint32_t crc = 0;
	self->core->checksum(self->core, &crc, mCHECKSUM_CRC32);
	return crc;
}

size_t fw_rom_size(const struct fw_core* self) {
	return self->core->romSize(self->core);
}

bool fw_loaded_by_script(const struct fw_core* self) {
	return self->loaded_by_script;
}

/* mGBA 0.11 replaced getGameTitle and getGameCode with getGameInfo. */
void fw_title(const struct fw_core* self, char* out) {
	memset(out, 0, FW_NAME_SIZE);
#ifdef FW_HAVE_GAME_INFO
	struct mGameInfo info = { 0 };
	self->core->getGameInfo(self->core, &info);
	snprintf(out, FW_NAME_SIZE, "%.*s", (int) sizeof(info.title), info.title);
#else
	self->core->getGameTitle(self->core, out);
#endif
	/* On a Game Boy, the last of the title's 16 bytes later became the flag for Game Boy Color games: 0x80 or 0xC0. */
	if (self->core->platform(self->core) == mPLATFORM_GB && (out[15] & 0x80)) {
		out[15] = 0;
	}
}

void fw_code(const struct fw_core* self, char* out) {
	memset(out, 0, FW_NAME_SIZE);
#ifdef FW_HAVE_GAME_INFO
	struct mGameInfo info = { 0 };
	self->core->getGameInfo(self->core, &info);
	snprintf(out, FW_NAME_SIZE, "%.*s", (int) sizeof(info.code), info.code);
#else
	self->core->getGameCode(self->core, out);
#endif
}

const char* fw_version(void) {
	return projectVersion;
}
