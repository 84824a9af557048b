/* Battery saves in memory. libmgba maps the file of a save, and a mapping kills the process if the disk is full or
 * another program truncates the file. So libmgba gets a VFile that is only memory. The Rust side reads that memory and
 * writes the file on disk. */
#include "internal.h"

#include <mgba/internal/gb/gb.h>
#include <mgba/internal/gba/gba.h>

#ifdef __linux__
#include <unistd.h>
#endif

/* The size of a save's memory, which is more than any save needs. The memory is never
 * moved, because libmgba keeps pointers into it. */
#define CAPACITY ((size_t) 2 << 20)
/* The same as MAX_SAVE_SIZE in src/lib.rs. */
#define MAX_SAVE_SIZE ((size_t) 1 << 20)

struct fw_save {
	struct VFile d; /* must be the first member, because self_of() casts a VFile to its fw_save */
	struct fw_save* next;
	uint64_t id;
	uint8_t* memory;
	size_t size;
	size_t position;
	bool open; /* whether libmgba still uses it */
	bool temporary;
	char* path; /* the file from which a script loaded it; NULL if it came from Rust or the file is not known */
};

static struct fw_save* self_of(struct VFile* vf) {
	return (struct fw_save*) vf;
}

static bool save_close(struct VFile* vf) {
	/* The memory stays until the Rust side has read it. */
	self_of(vf)->open = false;
	return true;
}

static off_t save_seek(struct VFile* vf, off_t offset, int whence) {
	struct fw_save* self = self_of(vf);
	off_t base = whence == SEEK_CUR ? (off_t) self->position : whence == SEEK_END ? (off_t) self->size : 0;
	if (base + offset < 0 || base + offset > (off_t) CAPACITY) {
		return -1;
	}
	self->position = base + offset;
	return self->position;
}

static ssize_t save_read(struct VFile* vf, void* buffer, size_t size) {
	struct fw_save* self = self_of(vf);
	size_t left = self->position < self->size ? self->size - self->position : 0;
	size_t count = size < left ? size : left;
	memcpy(buffer, self->memory + self->position, count);
	self->position += count;
	return count;
}

static ssize_t save_write(struct VFile* vf, const void* buffer, size_t size) {
	struct fw_save* self = self_of(vf);
	size_t left = CAPACITY - self->position;
	size_t count = size < left ? size : left;
	/* When libmgba restores a save, `buffer` can be the mapped memory itself. */
	memmove(self->memory + self->position, buffer, count);
	self->position += count;
	if (self->position > self->size) {
		self->size = self->position;
	}
	return count;
}

static void* save_map(struct VFile* vf, size_t size, int flags) {
	UNUSED(flags);
	return size <= CAPACITY ? self_of(vf)->memory : NULL;
}

static void save_unmap(struct VFile* vf, void* memory, size_t size) {
	UNUSED(vf);
	UNUSED(memory);
	UNUSED(size);
}

static void save_truncate(struct VFile* vf, size_t size) {
	struct fw_save* self = self_of(vf);
	if (size > CAPACITY) {
		size = CAPACITY;
	}
	if (size < self->size) {
		memset(self->memory + size, 0, self->size - size);
	}
	self->size = size;
}

static ssize_t save_size(struct VFile* vf) {
	return self_of(vf)->size;
}

static bool save_sync(struct VFile* vf, void* buffer, size_t size) {
	UNUSED(vf);
	UNUSED(buffer);
	UNUSED(size);
	return true;
}

static void release(struct fw_save* save) {
	free(save->memory);
	free(save->path);
	free(save);
}

/* Adds a save to the core. The caller fills in its `size` bytes. */
static struct fw_save* create(struct fw_core* self, size_t size, bool temporary) {
	struct fw_save* save = calloc(1, sizeof(*save));
	uint8_t* memory = save ? calloc(1, CAPACITY) : NULL;
	if (!memory) {
		free(save);
		return NULL;
	}
	save->d = (struct VFile) {
		.close = save_close,
		.seek = save_seek,
		.read = save_read,
		.readline = VFileReadline,
		.write = save_write,
		.map = save_map,
		.unmap = save_unmap,
		.truncate = save_truncate,
		.size = save_size,
		.sync = save_sync,
	};
	save->id = ++self->save_count;
	save->memory = memory;
	save->size = size;
	save->open = true;
	save->temporary = temporary;
	save->next = self->saves;
	self->saves = save;
	return save;
}

/* Frees the temporary saves that libmgba has closed. With `all`, frees all temporary saves,
 * even if libmgba has not closed them. The caller knows that libmgba no longer uses them. */
static void sweep(struct fw_core* self, bool all) {
	struct fw_save** link = &self->saves;
	while (*link) {
		struct fw_save* save = *link;
		if (save->temporary && (all || !save->open)) {
			*link = save->next;
			release(save);
		} else {
			link = &save->next;
		}
	}
}

/* Inserts a temporary save without content. So libmgba closes the save that is in use, if that is a temporary save or
 * the save of a loaded state. Without this, libmgba would not close such a save if a normal save replaced it, or if
 * there was no save afterwards. The inserted save has the largest size, because on a Game Boy, libmgba would replace a
 * smaller one with memory that it never frees. */
void fw_saves_cover(struct fw_core* self) {
	struct fw_save* cover = create(self, CAPACITY, true);
	if (cover) {
		self->load_temporary_save(self->core, &cover->d);
	}
}

static bool insert(struct fw_core* self, struct fw_save* save) {
	if (save->temporary) {
		bool loaded = self->load_temporary_save(self->core, &save->d);
		sweep(self, false);
		return loaded;
	}
	fw_saves_settle(self, false);
	fw_saves_cover(self);
	bool loaded = self->load_save(self->core, &save->d);
	sweep(self, true);
	return loaded;
}

int fw_save_load(struct fw_core* self, const uint8_t* data, size_t len, bool temporary, uint64_t* id) {
	struct fw_save* save = len <= MAX_SAVE_SIZE ? create(self, len, temporary) : NULL;
	if (!save) {
		return FW_NO_MEMORY;
	}
	memcpy(save->memory, data, len);
	*id = save->id;
	return insert(self, save) ? FW_OK : FW_FAILED;
}

/* A loaded state can have a save of its own, which libmgba uses in place of the cartridge's. A quarter of a second
 * after the game has changed it, libmgba makes it the cartridge's save. Before a reset, and before another ROM or save
 * replaces it, this function does so at once. */
void fw_saves_settle(struct fw_core* self, bool always) {
	if (self->core->platform(self->core) == mPLATFORM_GB) {
		struct GB* gb = self->core->board;
		if (gb->sramMaskWriteback && (gb->sramDirty || always)) {
			GBSavedataUnmask(gb);
		}
	} else {
		struct GBA* gba = self->core->board;
		if (gba->memory.savedata.maskWriteback && (gba->memory.savedata.dirty || always)) {
			GBASavedataUnmask(&gba->memory.savedata);
		}
	}
}

void fw_save_unload(struct fw_core* self) {
	fw_saves_settle(self, false);
	fw_saves_cover(self);
	self->load_save(self->core, NULL);
	sweep(self, true);
}

void fw_saves_dropped(struct fw_core* self) {
	sweep(self, true);
}

bool fw_save_view(const struct fw_core* self, size_t index, struct fw_save_view* out) {
	for (const struct fw_save* save = self->saves; save; save = save->next) {
		if (!save->temporary && !index--) {
			*out = (struct fw_save_view) {
				.id = save->id,
				.memory = save->memory,
				.size = save->size,
				.path = save->path,
				.open = save->open,
			};
			return true;
		}
	}
	return false;
}

uint64_t fw_save_in_use(const struct fw_core* self) {
	const struct VFile* used;
	const struct VFile* cartridge;
	bool of_state; /* whether the save that hides the cartridge's save is from a loaded state */
	if (self->core->platform(self->core) == mPLATFORM_GB) {
		const struct GB* gb = self->core->board;
		used = gb->sramVf;
		cartridge = gb->sramRealVf;
		of_state = gb->sramMaskWriteback;
	} else {
		const struct GBASavedata* savedata = &((const struct GBA*) self->core->board)->memory.savedata;
		used = savedata->vf;
		cartridge = savedata->realVf;
		of_state = savedata->maskWriteback;
	}
	if (used != cartridge && !of_state) {
		return 0;
	}
	for (const struct fw_save* save = self->saves; save; save = save->next) {
		if (&save->d == cartridge) {
			return save->id;
		}
	}
	return 0;
}

void fw_save_forget(struct fw_core* self, uint64_t id) {
	for (struct fw_save** link = &self->saves; *link; link = &(*link)->next) {
		struct fw_save* save = *link;
		if (save->id == id) {
			if (!save->open) {
				*link = save->next;
				release(save);
			}
			return;
		}
	}
}

void fw_saves_free(struct fw_core* self) {
	while (self->saves) {
		struct fw_save* next = self->saves->next;
		release(self->saves);
		self->saves = next;
	}
}

/* ---- saves that scripts load: emu:loadSaveFile(), emu:autoloadSave(), and states with saves ---- */

/* The core whose script runs on this thread. */
static __thread struct fw_core* host;

struct fw_core* fw_saves_enter(struct fw_core* self) {
	struct fw_core* before = host;
	host = self;
	return before;
}

/* The path of a file that libmgba opened; NULL if it is not found. libmgba stores the
 * file descriptor right after the VFile. To check this assumption, the function seeks in
 * the VFile, and tests whether the descriptor is then at the same position. */
static char* path_of(struct VFile* vf) {
#ifdef __linux__
	const off_t mark = 0x51A7E;
	int fd;
	memcpy(&fd, vf + 1, sizeof(fd));
	bool found = fd >= 0 && vf->seek(vf, mark, SEEK_SET) == mark && lseek(fd, 0, SEEK_CUR) == mark;
	vf->seek(vf, 0, SEEK_SET);
	if (!found) {
		return NULL;
	}
	char name[64];
	char path[4096];
	snprintf(name, sizeof(name), "/proc/self/fd/%i", fd);
	ssize_t len = readlink(name, path, sizeof(path) - 1);
	if (len <= 0) {
		return NULL;
	}
	path[len] = '\0';
	return strdup(path);
#else
	UNUSED(vf);
	return NULL;
#endif
}

static bool load_from_script(struct mCore* core, struct VFile* vf, bool temporary) {
	struct fw_core* self = host;
	if (!vf) {
		return false;
	}
	if (!self || self->core != core) {
		vf->close(vf);
		return false;
	}
	ssize_t size = vf->size(vf);
	struct fw_save* save = NULL;
	if (size >= 0 && (size_t) size <= MAX_SAVE_SIZE) {
		save = create(self, size, temporary);
	}
	if (save) {
		save->path = path_of(vf);
		if (size && vf->read(vf, save->memory, size) != size) {
			save->open = false;
			save->temporary = true;
			sweep(self, false);
			save = NULL;
		}
	}
	vf->close(vf);
	return save && insert(self, save);
}

static bool load_script_save(struct mCore* core, struct VFile* vf) {
	return load_from_script(core, vf, false);
}

static bool load_temporary_script_save(struct mCore* core, struct VFile* vf) {
	return load_from_script(core, vf, true);
}

/* Restores the save of a state that a script loads. If the script wants the state's save to replace the cartridge's
 * save while the save of an earlier state hides it, libmgba would replace only the save of the earlier state. */
static bool restore_script_save(struct mCore* core, const void* data, size_t size, bool writeback) {
	struct fw_core* self = host;
	if (!self || self->core != core) {
		return false;
	}
	if (writeback && !self->protects_save) {
		fw_saves_settle(self, true);
	}
	return self->restore_save(core, data, size, writeback);
}

void fw_save_protect(struct fw_core* self, bool protects) {
	self->protects_save = protects;
}

void fw_saves_init(struct fw_core* self) {
	self->load_save = self->core->loadSave;
	self->load_temporary_save = self->core->loadTemporarySave;
	self->restore_save = self->core->savedataRestore;
	self->core->loadSave = load_script_save;
	self->core->loadTemporarySave = load_temporary_script_save;
	self->core->savedataRestore = restore_script_save;
}
