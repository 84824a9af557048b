/* The text buffers of scripts; text_buffer.h explains them. */
#include "internal.h"

#ifdef ENABLE_SCRIPTING
#include "text_buffer.h"

struct fw_text_buffer {
	struct mScriptTextBuffer d; /* must be the first member: self_of() casts from it to the whole struct */
	struct fw_text_buffers* owner;
	struct fw_text_buffer* next;
	uint32_t x, y, cols, rows;
};

static struct fw_text_buffer* self_of(const struct mScriptTextBuffer* buffer) {
	return (struct fw_text_buffer*) buffer;
}

static void ignore_name(struct mScriptTextBuffer* buffer, const char* name) {
	UNUSED(buffer);
	UNUSED(name);
}

static void deinit(struct mScriptTextBuffer* buffer) {
	UNUSED(buffer); /* freed with its owner */
}

static uint32_t get_x(const struct mScriptTextBuffer* buffer) {
	return self_of(buffer)->x;
}

static uint32_t get_y(const struct mScriptTextBuffer* buffer) {
	return self_of(buffer)->y;
}

static uint32_t cols(const struct mScriptTextBuffer* buffer) {
	return self_of(buffer)->cols;
}

static uint32_t rows(const struct mScriptTextBuffer* buffer) {
	return self_of(buffer)->rows;
}

static void move_cursor(struct mScriptTextBuffer* buffer, uint32_t x, uint32_t y) {
	struct fw_text_buffer* self = self_of(buffer);
	self->x = x < self->cols ? x : self->cols;
	self->y = y < self->rows ? y : self->rows;
}

static void advance(struct mScriptTextBuffer* buffer, int32_t columns) {
	struct fw_text_buffer* self = self_of(buffer);
	int64_t x = (int64_t) self->x + columns;
	move_cursor(buffer, x > 0 ? (x > UINT32_MAX ? UINT32_MAX : (uint32_t) x) : 0, self->y);
}

static void print(struct mScriptTextBuffer* buffer, const char* text) {
	struct fw_text_buffer* self = self_of(buffer);
	if (!text) {
		return;
	}
	const char* line = text;
	for (const char* end; (end = strchr(line, '\n')); line = end + 1) {
		move_cursor(buffer, 0, self->y + 1);
	}
	advance(buffer, (int32_t) strlen(line));
	self->owner->print(self->owner->user, text);
}

static void clear(struct mScriptTextBuffer* buffer) {
	move_cursor(buffer, 0, 0);
}

static void set_size(struct mScriptTextBuffer* buffer, uint32_t cols, uint32_t rows) {
	struct fw_text_buffer* self = self_of(buffer);
	self->cols = cols;
	self->rows = rows;
	move_cursor(buffer, self->x, self->y);
}

struct mScriptTextBuffer* fw_text_buffer_create(void* buffers) {
	struct fw_text_buffers* owner = buffers;
	struct fw_text_buffer* self = calloc(1, sizeof(*self));
	if (!self) {
		abort(); /* libmgba does not check the result */
	}
	self->d = (struct mScriptTextBuffer) {
		.init = ignore_name,
		.deinit = deinit,
		.setName = ignore_name,
		.getX = get_x,
		.getY = get_y,
		.cols = cols,
		.rows = rows,
		.print = print,
		.clear = clear,
		.setSize = set_size,
		.moveCursor = move_cursor,
		.advance = advance,
	};
	self->cols = 80;
	self->rows = 24;
	self->owner = owner;
	self->next = owner->first;
	owner->first = self;
	return &self->d;
}

void fw_text_buffers_deinit(struct fw_text_buffers* buffers) {
	while (buffers->first) {
		struct fw_text_buffer* next = buffers->first->next;
		free(buffers->first);
		buffers->first = next;
	}
}
#endif
