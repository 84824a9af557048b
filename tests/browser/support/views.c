/* Writes the palettes, and the pictures of mGBA's own tile, sprite and map views, for a state of a game. The pictures
 * come from libmgba's caches, from which mGBA's Qt program also draws these views. The tiles of a sprite are put
 * together as in the program's ObjView.cpp.
 *
 *   views ROM STATE FOLDER
 *
 * For each picture, writes FOLDER/NAME.rgba and prints NAME, the width and the height. The bytes of a pixel are red,
 * green, blue and alpha.
 */
#include <mgba/flags.h>

#include <mgba-util/vfs.h>
#include <mgba/core/cache-set.h>
#include <mgba/core/config.h>
#include <mgba/core/core.h>
#include <mgba/core/log.h>
#include <mgba/core/serialize.h>
#include <mgba/internal/gb/gb.h>
#include <mgba/internal/gb/io.h>
#include <mgba/internal/gb/renderers/cache-set.h>
#include <mgba/internal/gba/gba.h>
#include <mgba/internal/gba/io.h>
#include <mgba/internal/gba/renderers/cache-set.h>

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ACROSS = 16, AREA = 64 };

static const char *folder;

static void be_quiet(struct mLogger *logger, int category, enum mLogLevel level, const char *format, va_list args)
{
    (void)logger, (void)category, (void)level, (void)format, (void)args;
}

static _Noreturn void die(const char *what, const char *which)
{
    fprintf(stderr, "views: %s %s\n", what, which);
    exit(1);
}

/* Writes a picture under a name made from `format`. */
static void put(const color_t *pixels, int width, int height, const char *format, ...)
{
    char name[64], path[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    snprintf(path, sizeof path, "%s/%s.rgba", folder, name);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(pixels, sizeof *pixels, (size_t)width * height, file) != (size_t)width * height || fclose(file))
        die("cannot write", path);
    printf("%s %d %d\n", name, width, height);
}

static void copy_tile(color_t *picture, int stride, int left, int top, const color_t *tile)
{
    for (int y = 0; y < 8; y++)
        memcpy(&picture[(top + y) * stride + left], &tile[y * 8], 8 * sizeof *tile);
}

/* Writes a picture of `count` tiles of a cache, beginning with the tile `first`, with ACROSS tiles in each row. */
static void put_tiles(struct mCacheSet *caches, int cache, int first, int count, int palette, const char *name)
{
    struct mTileCache *tiles = mTileCacheSetGetPointer(&caches->tiles, cache);
    color_t *picture = calloc(count * AREA, sizeof *picture);
    for (int i = 0; i < count; i++)
        copy_tile(picture, ACROSS * 8, i % ACROSS * 8, i / ACROSS * 8, mTileCacheGetTile(tiles, first + i, palette));
    put(picture, ACROSS * 8, count / ACROSS * 8, "tiles-%s-%d", name, palette);
    free(picture);
}

static void put_map(struct mCacheSet *caches, int index)
{
    struct mMapCache *map = mMapCacheSetGetPointer(&caches->maps, index);
    int wide = 1 << mMapCacheSystemInfoGetTilesWide(map->sysConfig);
    int high = 1 << mMapCacheSystemInfoGetTilesHigh(map->sysConfig);
    struct mMapCacheEntry *entries = calloc(wide * high, sizeof *entries);
    color_t *picture = calloc(wide * high * AREA, sizeof *picture);
    for (int y = 0; y < high; y++)
        for (int x = 0; x < wide; x++)
            mMapCacheCleanTile(map, entries, x, y);
    for (int y = 0; y < high * 8; y++)
        memcpy(&picture[y * wide * 8], mMapCacheGetRow(map, y), wide * 8 * sizeof *picture);
    put(picture, wide * 8, high * 8, "map-%d", index);
    free(picture);
    free(entries);
}

/* Writes the bitmap. It has no transparent pixels, so mGBA's view ignores the alpha of its pixels. */
static void put_bitmap(struct mCacheSet *caches, int index)
{
    struct mBitmapCache *bitmap = mBitmapCacheSetGetPointer(&caches->bitmaps, index);
    int width = mBitmapCacheSystemInfoGetWidth(bitmap->sysConfig);
    int height = mBitmapCacheSystemInfoGetHeight(bitmap->sysConfig);
    struct mBitmapCacheEntry entries[2 * 160] = {{0}};
    color_t *picture = calloc(width * height, sizeof *picture);
    for (int y = 0; y < height; y++) {
        mBitmapCacheCleanRow(bitmap, entries, y);
        for (int x = 0; x < width; x++)
            picture[y * width + x] = mBitmapCacheGetRow(bitmap, y)[x] | 0xFF000000;
    }
    put(picture, width, height, "map-2");
    free(picture);
}

struct sprite {
    int cache, tile, palette;
    int wide, high, stride; /* in tiles */
};

static void put_sprite(struct mCacheSet *caches, int index, struct sprite sprite)
{
    struct mTileCache *tiles = mTileCacheSetGetPointer(&caches->tiles, sprite.cache);
    int most = mTileCacheSystemInfoGetMaxTiles(tiles->sysConfig);
    color_t picture[64 * 64] = {0};
    if (sprite.wide == 0)
        return;
    for (int y = 0; y < sprite.high; y++)
        for (int x = 0; x < sprite.wide; x++) {
            int tile = sprite.tile + y * sprite.stride + x;
            if (tile < most)
                copy_tile(picture, sprite.wide * 8, x * 8, y * 8, mTileCacheGetTile(tiles, tile, sprite.palette));
        }
    put(picture, sprite.wide * 8, sprite.high * 8, "sprite-%d", index);
}

static void put_gba(struct GBA *gba)
{
    struct mCacheSet caches;
    color_t colours[512];
    uint16_t control = gba->memory.io[REG_DISPCNT >> 1];
    int mode = GBARegisterDISPCNTGetMode(control);
    GBAVideoCacheInit(&caches);
    GBAVideoCacheAssociate(&caches, &gba->video);
    for (int i = 0; i < 512; i++)
        colours[i] = mColorFrom555(gba->video.palette[i]) | 0xFF000000;
    put(colours, 16, 32, "palettes");
    /* Cache 0 has background tiles with 16 colours, and cache 1 those with 256. Caches 2 and 3 have the same kinds of
     * tiles for sprites. */
    for (int palette = 0; palette < 16; palette++) {
        put_tiles(&caches, 0, 0, 2048, palette, "0");
        put_tiles(&caches, 2, 0, 1024, palette, "2");
    }
    put_tiles(&caches, 1, 0, 1024, 0, "1");
    put_tiles(&caches, 3, 0, 512, 0, "3");
    for (int i = mode == 2 ? 2 : 0; mode < 3 && i < (mode == 1 ? 3 : 4); i++)
        put_map(&caches, i);
    if (mode >= 3)
        put_bitmap(&caches, mode == 4);
    for (int i = 0; i < 128; i++) {
        const struct GBAObj *obj = &gba->video.oam.obj[i];
        const int *size =
            GBAVideoObjSizes[GBAObjAttributesAGetShape(obj->a) * 4 + GBAObjAttributesBGetSize(obj->b)];
        bool many_colours = GBAObjAttributesAIs256Color(obj->a);
        bool square = !GBARegisterDISPCNTIsObjCharacterMapping(control);
        put_sprite(&caches, i,
                   (struct sprite){
                       .cache = many_colours ? 3 : 2,
                       .tile = GBAObjAttributesCGetTile(obj->c) / (many_colours ? 2 : 1),
                       .palette = many_colours ? 0 : GBAObjAttributesCGetPalette(obj->c),
                       .wide = size[0] / 8,
                       .high = size[1] / 8,
                       .stride = square ? (many_colours ? 16 : 32) : size[0] / 8,
                   });
    }
}

static void put_gb(struct GB *gb)
{
    struct mCacheSet caches;
    color_t colours[64];
    bool colour = gb->model >= GB_MODEL_CGB;
    GBVideoCacheInit(&caches);
    GBVideoCacheAssociate(&caches, &gb->video);
    for (int i = 0; i < 64; i++)
        colours[i] = mColorFrom555(gb->video.palette[i]) | 0xFF000000;
    put(colours, 4, 16, "palettes");
    /* A bank begins with 384 tiles. The maps are in the rest of the bank. */
    for (int palette = 0; palette < 16; palette++) {
        put_tiles(&caches, 0, 0, 384, palette, "0");
        if (colour)
            put_tiles(&caches, 0, 512, 384, palette, "1");
    }
    put_map(&caches, 0);
    put_map(&caches, 1);
    for (int i = 0; i < 40; i++) {
        const struct GBObj *obj = &gb->video.oam.obj[i];
        bool bank = colour && GBObjAttributesIsBank(obj->attr);
        put_sprite(&caches, i,
                   (struct sprite){
                       .tile = obj->tile + (bank ? 512 : 0),
                       .palette = 8 + (colour ? GBObjAttributesGetCGBPalette(obj->attr)
                                              : GBObjAttributesGetPalette(obj->attr)),
                       .wide = 1,
                       .high = GBRegisterLCDCIsObjSize(gb->memory.io[GB_REG_LCDC]) ? 2 : 1,
                       .stride = 1,
                   });
    }
}

int main(int argc, char **argv)
{
    static color_t pixels[256 * 224];
    static struct mLogger logger = { .log = be_quiet };
    if (argc != 4) {
        fputs("usage: views ROM STATE FOLDER\n", stderr);
        return 2;
    }
    folder = argv[3];
    mLogSetDefaultLogger(&logger);
    struct mCore *core = mCoreFind(argv[1]);
    if (!core || !core->init(core))
        die("not a ROM:", argv[1]);
    mCoreInitConfig(core, NULL);
    core->setVideoBuffer(core, pixels, 256);
    if (!mCoreLoadFile(core, argv[1]))
        die("cannot load", argv[1]);
    core->reset(core);
    struct VFile *state = VFileOpen(argv[2], O_RDONLY);
    if (!state || !mCoreLoadStateNamed(core, state, 0))
        die("cannot load the state", argv[2]);
    if (core->platform(core) == mPLATFORM_GBA)
        put_gba(core->board);
    else
        put_gb(core->board);
}
