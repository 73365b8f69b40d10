// Which row n of a matrix W (N, K) gives the largest W[n] · x[m] + bias[n], for each word x[m] (K), in float32.
//
// The matrix in int8 tells each product up to a margin: what rounding left out of the row and of the word, each at most
// as much as its length times that of the other (Cauchy-Schwarz). Only rows that by their margins can still be the best,
// a few of many thousands, are multiplied as they are. The answer is the exact one; only the way to it is shorter.
//
// Words are whole numbers of 16 bits, as in int8.h. Where the machine adds up four products of 8 bits at once, and no
// word has numbers so large beside its others that 8 bits tell little of them, they are bytes, twice as fast.
#include "int8.h"
#include <math.h>
#include <omp.h>

#ifdef __AVX2__
#define ROUNDING 6e-8f // what one operation of float32 may be wrong by, as a share of its result

// What is multiplied: W as it is, and rounded, with what round_rows says of it.
typedef struct {
    const float *weight, *bias; // bias (N) may be missing; -inf: this row is not asked for
    const int8_t *rounded;
    const float *scales, *errors, *sizes;
    const int32_t *totals;
    long n;
} table;

// How far a word's products may be from what whole numbers tell: lengths[m] · errors[n] for what the row leaves out, and
// rests[m] · (sizes[n] + errors[n]) for what the word does; and what rounding adds.
typedef struct {
    float *lengths, *rests; // (padded)
} margins;

#if defined(__AVX512VNNI__) && defined(AVX512)
#define BYTES 1
#define QUAD 4
#define FAR 1024         // bytes of a row of W that are near at once
#define NEAR (FAR + 64)  // their distance: no power of two
#define COARSE 0.03f     // the share of a word's length that bytes may leave out
#define DEEPEST_BYTES 65536 // numbers of a word of whose bytes no sum overflows

// The word in bytes, 128 for zero; what they leave out has the length `rest`. 0: too much.
static int to_bytes(const float *x, long k, float length, uint8_t *bytes, float *level, float *rest) {
    vec best = {}, squares = {};
    for (long i = 0; i < k; i += SIMD_WIDTH) best = max_vec(abs_vec(load(x + i)), best);
    *level = reduce_max(best) / 127;
    vec factor = broadcast(*level > 1e-30f ? 1 / *level : 0);
    for (long i = 0; i < k; i += SIMD_WIDTH) {
        vec whole = round_vec(load(x + i) * factor), left = load(x + i) - whole * *level;
        squares += left * left;
        __m512i above = (__m512i)(__builtin_convertvector(whole, ivec) + 128);
        _mm_storeu_si128((void *)(bytes + i), _mm512_cvtepi32_epi8(above));
    }
    *rest = sqrtf(reduce_sum(squares) + k * TINY);
    return *rest <= COARSE * length;
}

// sums[r][m] += Σ near[r][i] words[i][m], for TILE_ROWS rows and one or two vectors of words.
INLINE void add_quads(const int vecs, const int8_t *near, const uint8_t *words, long length, int32_t *sums, long stride,
                      const int8_t *ahead, long ahead_stride) {
    wide sum[TILE_ROWS][2];
    UNROLL for (int r = 0; r < TILE_ROWS; r++)
        UNROLL for (int v = 0; v < vecs; v++) sum[r][v] = load_wide(sums + r * stride + v * SIMD_WIDTH);
    for (long i = 0; i < length; i += QUAD) {
        if (ahead && i % 64 == 0)
            for (int r = 0; r < TILE_ROWS; r++) __builtin_prefetch(ahead + r * ahead_stride + i, 0, 2);
        wide word[2];
        UNROLL for (int v = 0; v < vecs; v++) word[v] = load_wide(words + (i * vecs + v * QUAD) * SIMD_WIDTH);
        UNROLL for (int r = 0; r < TILE_ROWS; r++) {
            int32_t quad;
            memcpy(&quad, near + r * NEAR + i, sizeof quad);
            UNROLL for (int v = 0; v < vecs; v++)
                sum[r][v] = _mm512_dpbusd_epi32(sum[r][v], word[v], _mm512_set1_epi32(quad));
        }
    }
    UNROLL for (int r = 0; r < TILE_ROWS; r++)
        UNROLL for (int v = 0; v < vecs; v++) store_wide(sums + r * stride + v * SIMD_WIDTH, sum[r][v]);
}
static NOINLINE void quads_one(const int8_t *near, const uint8_t *words, long length, int32_t *sums, long stride,
                            const int8_t *ahead, long ahead_stride) {
    add_quads(1, near, words, length, sums, stride, ahead, ahead_stride);
}
static NOINLINE void quads_two(const int8_t *near, const uint8_t *words, long length, int32_t *sums, long stride,
                            const int8_t *ahead, long ahead_stride) {
    add_quads(2, near, words, length, sums, stride, ahead, ahead_stride);
}

static void turn_bytes(const whole_words *w, const uint8_t *bytes, uint8_t *turned, long first, long start) {
    long width = min_long(TILE_COLUMNS, w->padded - first), given = min_long(width, w->words - first);
    uint8_t *to = turned + first * w->k + start * width;
    if (given < width) memset(to, 0, TURNED * width);
    transpose((const float *)(bytes + first * w->k + start), w->k / QUAD, (float *)to, width, given, TURNED / QUAD);
}

// As multiply_rows, with words in bytes.
static void multiply_bytes(const table *t, const whole_words *w, const uint8_t *turned, long row, long rows, int8_t *near,
                           int32_t *sums) {
    long k = w->k, padded = w->padded;
    for (long r = 0; r < TILE_ROWS; r++)
        for (long m = 0; m < padded; m += SIMD_WIDTH)
            *(ivec *)(sums + r * padded + m) = (ivec){} - (r < rows ? 128 * t->totals[row + r] : 0);
    for (long start = 0; start < k; start += FAR) {
        long length = min_long(FAR, k - start);
        const int8_t *from = t->rounded + row * k + start;
        for (long r = 0; r < rows; r++) memcpy(near + r * NEAR, from + r * k, length);
        for (long first = 0; first < padded; first += TILE_COLUMNS) {
            const int8_t *ahead = first == 0 && row + 2 * TILE_ROWS <= t->n ? from + TILE_ROWS * k : 0;
            int two = padded - first >= TILE_COLUMNS;
            const uint8_t *panel = turned + first * k + start * (two ? TILE_COLUMNS : SIMD_WIDTH);
            (two ? quads_two : quads_one)(near, panel, length, sums + first, padded, ahead, k);
        }
    }
}
#else // never called
#define BYTES 0
#define DEEPEST_BYTES 0
static int to_bytes(const float *x, long k, float length, uint8_t *bytes, float *level, float *rest) {
    return (void)x, (void)k, (void)length, (void)bytes, (void)level, (void)rest, 0;
}
static void turn_bytes(const whole_words *w, const uint8_t *bytes, uint8_t *turned, long first, long start) {
    (void)w, (void)bytes, (void)turned, (void)first, (void)start;
}
static void multiply_bytes(const table *t, const whole_words *w, const uint8_t *turned, long row, long rows, int8_t *near,
                           int32_t *sums) {
    (void)t, (void)w, (void)turned, (void)row, (void)rows, (void)near, (void)sums;
}
#endif

// Of the rows of a block: the most that one of them may give each word, and `floors`, the least that the best row gives.
static void bound(const table *t, const whole_words *w, const margins *left, long row, long rows, const int32_t *sums,
                  float *ceilings, float *floors) {
    float rounding = ROUNDING * (w->k / SIMD_WIDTH + 16); // of a sum of K products in float32
    for (long m = 0; m < w->padded; m += SIMD_WIDTH) {
        long count = w->padded - m; // a whole vector, but for few words
        vec levels = load_partial(w->levels + m, count), lengths = load_partial(left->lengths + m, count);
        vec rests = load_partial(left->rests + m, count), ceiling = broadcast(-INFINITY), floor = load_partial(floors + m, count);
        for (long r = 0; r < rows; r++) {
            ivec sum = (ivec)load_partial((const float *)(sums + r * w->padded + m), count);
            float size = t->sizes[row + r], error = t->errors[row + r], bias = t->bias ? t->bias[row + r] : 0;
            vec told = __builtin_convertvector(sum, vec) * (levels * t->scales[row + r]) + bias;
            vec margin = lengths * (error + rounding * size) + rests * (size + error) + rounding * fabsf(bias);
            ceiling = max_vec(told + margin, ceiling);
            floor = max_vec(told - margin, floor);
        }
        store_partial(ceilings + m, ceiling, count);
        store_partial(floors + m, floor, count);
    }
}

// For up to SIMD_WIDTH words the best of the rows whose block may have it; -1 where a row compared gives no number.
static void best_rows(const table *t, const float *x, long k, long words, const float *ceilings, long stride,
                      const float *floors, int64_t *found) {
    float best[SIMD_WIDTH];
    vec floor = broadcast(INFINITY);
    ivec damaged = {};
    for (long m = 0; m < words; m++) best[m] = -INFINITY, found[m] = -1, floor[m] = floors[m];
    for (long row = 0; row < t->n; row += TILE_ROWS) {
        vec ceiling = load_partial(ceilings + row / TILE_ROWS * stride, words);
        ivec may = ceiling >= floor; // -1 where it is so
        if (!reduce_sum_ints(may)) continue;
        for (long m = 0; m < words; m++)
            for (long r = row; may[m] && r < min_long(row + TILE_ROWS, t->n); r++) {
                float value = dot_product(x + m * k, t->weight + r * k, k) + (t->bias ? t->bias[r] : 0);
                damaged[m] |= !(value < INFINITY); // NaN too
                if (value > best[m]) best[m] = value, found[m] = r;
            }
    }
    for (long m = 0; m < words; m++) found[m] = damaged[m] ? -1 : found[m];
}

// Round the words, in bytes if that tells enough of all of them, and say what that leaves out. Called by all threads of a
// team; `coarse` is theirs together, and says in the end that they are no bytes.
static void round_or_bytes(const float *x, const float *filled, long k, float most, whole_words *w, margins *left,
                           uint8_t *bytes, uint8_t *turned, int *coarse) {
#pragma omp for
    for (long m = 0; m < w->words; m++) {
        left->lengths[m] = sqrtf(dot_product(x + m * k, x + m * k, k) + k * TINY);
        if (bytes && !to_bytes(filled + m * w->k, w->k, left->lengths[m], bytes + m * w->k, w->levels + m, left->rests + m)) {
#pragma omp atomic write
            *coarse = 1;
        }
    }
    if (*coarse) { // the same for all: the loop above ends for all at once
        round_words(filled, most, w);
#pragma omp for
        for (long m = 0; m < w->words; m++) left->rests[m] = w->levels[m] * 0.5f * sqrtf(k) + sqrtf(k * TINY);
    } else {
#pragma omp for collapse(2)
        for (long first = 0; first < w->padded; first += TILE_COLUMNS)
            for (long start = 0; start < w->k; start += TURNED) turn_bytes(w, bytes, turned, first, start);
    }
}

// x (M, K) with zeros behind it up to `wide` numbers a word stands in `filled` (M, wide). 0, or 1 where memory is short.
int argmax_shortlist(const float *x, const float *filled, const float *weight, const float *bias, const int8_t *rounded,
              const float *scales, const float *errors, const float *sizes, const int32_t *totals, long words, long n,
              long k, long wide, float most, int64_t *found, int threads) {
    table t = {weight, bias, rounded, scales, errors, sizes, totals, n};
    whole_words w = {.words = words, .k = wide};
    int coarse = !BYTES || words <= FEW || wide > DEEPEST_BYTES, out_of_memory = make_room(&w);
    long blocks = (n + TILE_ROWS - 1) / TILE_ROWS;
    int32_t *every_sum = allocate(threads * TILE_ROWS * w.padded * sizeof(int32_t));
    float *ceilings = allocate(blocks * w.padded * sizeof(float)), *floors = allocate(threads * w.padded * sizeof(float));
    uint8_t *bytes = coarse ? 0 : allocate(words * wide), *turned = coarse ? 0 : allocate(w.padded * wide);
    margins left = {calloc(w.padded, sizeof(float)), calloc(w.padded, sizeof(float))};
    out_of_memory |= !every_sum || !ceilings || !floors || !left.lengths || !left.rests;
    out_of_memory |= !coarse && (!bytes || !turned);
#pragma omp parallel num_threads(threads) if (!out_of_memory)
    if (!out_of_memory) {
        round_or_bytes(x, filled, k, most, &w, &left, bytes, turned, &coarse);
        int16_t near[TILE_ROWS * STRIDE];
        memset(near, 0, sizeof near);
        int32_t *sums = every_sum + (long)omp_get_thread_num() * TILE_ROWS * w.padded;
        float *own = floors + omp_get_thread_num() * w.padded;
        for (long m = 0; m < w.padded; m++) own[m] = -INFINITY;
#pragma omp for
        for (long block = 0; block < blocks; block++) {
            long row = block * TILE_ROWS, rows = min_long(TILE_ROWS, n - row);
            if (coarse) multiply_rows(&w, rounded, n, row, rows, near, sums);
            else multiply_bytes(&t, &w, turned, row, rows, (int8_t *)near, sums);
            bound(&t, &w, &left, row, rows, sums, ceilings + block * w.padded, own);
        }
#pragma omp for
        for (long m = 0; m < w.padded; m++) // the best that any core found
            for (long core = 1; core < omp_get_num_threads(); core++)
                floors[m] = fmaxf(floors[m], floors[core * w.padded + m]);
#pragma omp for schedule(dynamic)
        for (long m = 0; m < words; m += SIMD_WIDTH)
            best_rows(&t, x + m * k, k, min_long(SIMD_WIDTH, words - m), ceilings + m, w.padded, floors + m, found + m);
    }
    free_room(&w);
    free(every_sum), free(ceilings), free(floors), free(bytes), free(turned), free(left.lengths), free(left.rests);
    return out_of_memory;
}
#else
int argmax_shortlist(const float *x, const float *filled, const float *weight, const float *bias, const int8_t *rounded,
              const float *scales, const float *errors, const float *sizes, const int32_t *totals, long words, long n,
              long k, long wide, float most, int64_t *found, int threads) {
    (void)totals, (void)x, (void)filled, (void)weight, (void)bias, (void)rounded, (void)scales, (void)errors, (void)sizes, (void)words;
    (void)n, (void)k, (void)wide, (void)most, (void)found, (void)threads;
    return 1;
}
#endif
