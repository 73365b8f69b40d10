// x Wᵀ + b with a packed matrix; and packing one, from the blocks of a GGUF file or from float32.
#include "packed.h"
#include <math.h>
#include <omp.h>

// The types of GGUF files, by their numbers there.
enum { Q4_0 = 2, Q4_1 = 3, Q5_0 = 6, Q5_1 = 7, Q8_0 = 8, Q4_K = 12, Q5_K = 13, Q6_K = 14 };
#define SUPER_BLOCK 256 // numbers in a block of the _K types

// 32 numbers: scale · (code - offset), or scale · code + minimum, or two halves with scale and other.
typedef struct {
    uint8_t codes[PACKED_BLOCK];
    float scale, other; // other: the minimum, or the scale of the second half
} block;

static void read_nibbles(const uint8_t *from, uint8_t *codes) {
    for (int i = 0; i < HALF_BLOCK; i++) codes[i] = from[i] & 15, codes[i + HALF_BLOCK] = from[i] >> 4;
}

// Bit i of four bytes is the fifth bit of code i.
static void read_fifth_bits(const uint8_t *from, uint8_t *codes) {
    for (int i = 0; i < PACKED_BLOCK; i++) codes[i] |= (from[i / 8] >> i % 8 & 1) << 4;
}

// Scale and minimum `s` of eight, of 6 bits each, in the 12 bytes of a _K block.
static void read_six_bits(const uint8_t *from, int s, int *scale, int *minimum) {
    if (s < 4) *scale = from[s] & 63, *minimum = from[s + 4] & 63;
    else {
        *scale = (from[s + 4] & 15) | from[s - 4] >> 6 << 4;
        *minimum = from[s + 4] >> 4 | from[s] >> 6 << 4;
    }
}

// Block b of 32 numbers of a row whose bytes begin at `row`, of a type that `copy_block` does not know.
static void read_block(int type, const uint8_t *row, long b, block *found) {
    long s = b % (SUPER_BLOCK / PACKED_BLOCK), super = b / (SUPER_BLOCK / PACKED_BLOCK); // of the _K types
    if (type == Q5_0 || type == Q5_1) {
        row += b * (type == Q5_0 ? 22 : 24);
        found->scale = half_at(row);
        row += 2;
        if (type == Q5_1) found->other = half_at(row), row += 2;
        read_nibbles(row + 4, found->codes);
        read_fifth_bits(row, found->codes);
        if (type == Q5_0) // the offset is 16 there, 32 in a matrix of 6 bits
            for (int i = 0; i < PACKED_BLOCK; i++) found->codes[i] += 16;
    } else if (type == Q4_K || type == Q5_K) {
        row += super * (type == Q4_K ? 144 : 176);
        int scale, minimum;
        read_six_bits(row + 4, s, &scale, &minimum);
        found->scale = half_at(row) * scale, found->other = -half_at(row + 2) * minimum;
        const uint8_t *fifth = row + 16, *low = fifth + (type == Q5_K ? 32 : 0) + s / 2 * 32;
        for (int i = 0; i < PACKED_BLOCK; i++) {
            found->codes[i] = s % 2 ? low[i] >> 4 : low[i] & 15;
            if (type == Q5_K) found->codes[i] |= (fifth[i] >> s & 1) << 4;
        }
    } else { // Q6_K: four low bits, two high bits, 16 scales of 8 bits, and their scale
        row += super * 210;
        long half = s / 4, quarter = s % 4;
        const uint8_t *low = row + half * 64 + quarter % 2 * 32, *high = row + 128 + half * 32;
        const int8_t *scales = (const int8_t *)row + 192 + half * 8 + quarter * 2;
        float scale = half_at(row + 208);
        found->scale = scale * scales[0], found->other = scale * scales[1];
        for (int i = 0; i < PACKED_BLOCK; i++)
            found->codes[i] = (quarter < 2 ? low[i] & 15 : low[i] >> 4) | (high[i] >> 2 * quarter & 3) << 4;
    }
}

// Put a block in its place in the panel; returns 1 if a scale is not finite in float16.
static int write_block(int bits, int layout, const block *from, long row, uint8_t *panel) {
    for (int i = 0; i < PACKED_BLOCK; i++) {
        long g = i / 4, at = row * 4 + i % 4;
        if (bits == 8) panel[g * 4 * PANEL + at] = from->codes[i];
        else panel[g % 4 * 4 * PANEL + at] |= (from->codes[i] & 15) << (g < 4 ? 0 : 4);
        if (bits == 6) panel[(4 + g / 4) * 4 * PANEL + at] |= from->codes[i] >> 4 << 2 * (g % 4);
    }
    uint16_t scale = float_to_half(from->scale), other = layout == SYMMETRIC ? 0 : float_to_half(from->other);
    panel += code_bytes(bits) + 2 * row;
    memcpy(panel, &scale, 2);
    if (layout != SYMMETRIC) memcpy(panel + 2 * PANEL, &other, 2);
    return (scale & 0x7c00) == 0x7c00 || (other & 0x7c00) == 0x7c00;
}

// Blocks whose bytes need only another place, four of a row at a time; returns 1 if a scale is not finite.
static int copy_block(int type, const uint8_t *row, long b, long lane, uint8_t *panel) {
    long header = type == Q4_1 ? 4 : 2, groups = type == Q8_0 ? 8 : 4;
    const uint8_t *from = row + b * (header + 4 * groups);
    for (long g = 0; g < groups; g++) {
        uint32_t four_bytes;
        memcpy(&four_bytes, from + header + 4 * g, 4);
        four_bytes ^= type == Q8_0 ? 0x80808080 : 0; // signed there
        memcpy(panel + g * 4 * PANEL + lane * 4, &four_bytes, 4);
    }
    int damaged = 0;
    for (long at = 0; at < header; at += 2) {
        memcpy(panel + groups * 4 * PANEL + at * PANEL + 2 * lane, from + at, 2);
        damaged |= (from[at + 1] & 0x7c) == 0x7c;
    }
    return damaged;
}

// The block nearest to 32 numbers of which `filled` exist: 8 bits symmetric, or 4 bits with a minimum, which is searched
// for the smallest squared error.
static void round_to_block(const float *numbers, long filled, int bits, block *found) {
    float values[PACKED_BLOCK] = {0}, low = numbers[0], high = numbers[0], damage = 0;
    memcpy(values, numbers, filled * sizeof(float));
    for (int i = 0; i < filled; i++) {
        low = fminf(low, values[i]), high = fmaxf(high, values[i]);
        damage += values[i] * 0; // NaN if one is not finite
    }
    found->scale = damage, found->other = 0;
    if (damage != 0) return;
    if (bits == 8) {
        found->scale = half_to_float(float_to_half(fmaxf(high, -low) / 127));
        float factor = found->scale ? 1 / found->scale : 0;
        for (int i = 0; i < PACKED_BLOCK; i++)
            found->codes[i] = 128 + (int)fmaxf(-127, fminf(127, rintf(values[i] * factor)));
        return;
    }
    float best = INFINITY;
    for (int cut = 0; cut < 49; cut++) { // ranges of which up to 24 % are cut off at either end
        float range = high - low, from = low + 0.04f * (cut / 7) * range, to = high - 0.04f * (cut % 7) * range;
        block tried = {.scale = half_to_float(float_to_half((to - from) / 15)),
                       .other = half_to_float(float_to_half(from))};
        float error = 0, factor = tried.scale ? 1 / tried.scale : 0;
        for (int i = 0; i < filled; i++) {
            float level = fmaxf(0, fminf(15, rintf((values[i] - tried.other) * factor)));
            tried.codes[i] = (uint8_t)level;
            float left = values[i] - (level * tried.scale + tried.other);
            error += left * left;
        }
        if (error < best || cut == 0) best = error, *found = tried;
    }
}

// W (N, K) as panels: from the blocks of a GGUF file, or, with type -1, from float32 numbers. `source` has N rows of
// `row_bytes`. Returns OUT_OF_RANGE if a scale is not finite in float16.
int pack_matrix(const uint8_t *source, int type, long row_bytes, uint8_t *panels, long n, long k, int bits, int layout,
                int threads) {
    packed_matrix w = {panels, n, k, (k + PACKED_BLOCK - 1) / PACKED_BLOCK, bits, layout};
    int damaged = 0;
#pragma omp parallel for num_threads(threads) reduction(| : damaged)
    for (long panel = 0; panel < (n + PANEL - 1) / PANEL; panel++) {
        uint8_t *to = panels + panel * panel_bytes(&w);
        memset(to, 0, panel_bytes(&w));
        for (long row = panel * PANEL; row < min_long(n, (panel + 1) * PANEL); row++)
            for (long b = 0; b < w.blocks; b++) {
                const uint8_t *from = source + row * row_bytes;
                uint8_t *at = to + b * panel_block_bytes(bits, layout);
                if (type == Q4_0 || type == Q4_1 || type == Q8_0) {
                    damaged |= copy_block(type, from, b, row % PANEL, at);
                    continue;
                }
                block found = {.codes = {0}};
                if (type >= 0) read_block(type, from, b, &found);
                else
                    round_to_block((const float *)from + b * PACKED_BLOCK,
                                   min_long(PACKED_BLOCK, k - b * PACKED_BLOCK), bits, &found);
                damaged |= write_block(bits, layout, &found, row % PANEL, at);
            }
    }
    return damaged ? OUT_OF_RANGE : 0;
}

// out (M, K): rows[m] of the matrix. Returns OUT_OF_RANGE if there is no such row.
int unpack_rows(const uint8_t *panels, long n, long k, int bits, int layout, const int64_t *rows, long count,
                float *out, int threads) {
    packed_matrix w = {panels, n, k, (k + PACKED_BLOCK - 1) / PACKED_BLOCK, bits, layout};
    for (long m = 0; m < count; m++)
        if (rows[m] < 0 || rows[m] >= n) return OUT_OF_RANGE;
#pragma omp parallel for num_threads(threads) if (count > 1)
    for (long m = 0; m < count; m++) unpack_row(&w, rows[m], out + m * k);
    return 0;
}

// out (M, N) = x Wᵀ + b for x (M, K); bias (N) may be NULL. Returns OUT_OF_MEMORY on failure.
int linear_packed(const float *x, const uint8_t *panels, const float *bias, float *out, long batch, long n, long k,
                  int bits, int layout, int threads) {
    packed_matrix w = {panels, n, k, (k + PACKED_BLOCK - 1) / PACKED_BLOCK, bits, layout};
    rounded_rows rows = {batch, allocate(batch * w.blocks * sizeof(rounded_block))};
    int out_of_memory = !rows.blocks;
#pragma omp parallel num_threads(threads) if (!out_of_memory)
    if (!out_of_memory) {
#pragma omp for collapse(2)
        for (long m = 0; m < batch; m++)
            for (long b = 0; b < w.blocks; b++) round_blocks(x, k, &rows, m, b, b + 1);
#pragma omp for
        for (long panel = 0; panel < (n + PANEL - 1) / PANEL; panel++)
            multiply_panel(&w, panel, &rows, bias, 0, out, n);
    }
    free(rows.blocks);
    return out_of_memory ? OUT_OF_MEMORY : 0;
}
