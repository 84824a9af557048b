/* Buffers that the Rust side gets. */
#include "internal.h"
#ifdef __GLIBC__
#include <malloc.h>
#endif

void fw_free(void* memory) {
	free(memory);
}

int fw_take_file(struct VFile* vf, uint8_t** out, size_t* len) {
	ssize_t size = vf->size(vf);
	int status = FW_FAILED;
	uint8_t* copy = size >= 0 ? malloc(size ? size : 1) : NULL;
	if (copy) {
		vf->seek(vf, 0, SEEK_SET);
		if (vf->read(vf, copy, size) == size) {
			*out = copy;
			*len = size;
			status = FW_OK;
		} else {
			free(copy);
		}
	}
	vf->close(vf);
	return status;
}

void fw_release_memory(void) {
#ifdef __GLIBC__
	malloc_trim(0);
#endif
}
