// x Wᵀ + b for activations x (M, K) and a matrix W (N, K), or several side by side, in float32; then an activation.
//
// x is transposed to (K, M) and cut into panels of two vectors. Each number of W is multiplied with a vector of x:
// TILE_ROWS × 2 vectors of sums stay in registers, and no sum goes across a vector. Rows of W are first copied to a
// small buffer, a chunk of each (rows a power of two apart would evict each other from the cache), while the rows
// before them are multiplied. For a small batch the threads share the rows of W, which is read once; for a large one
// the batch.
#pragma once
#include "activation.h"
#include <omp.h>

#define CHUNK 256           // numbers of a row of W in the buffer
#define STRIDE (CHUNK + 16) // their distance there: no power of two
#define PARTIAL_SUM 128     // products in one partial sum: short sums accumulate less rounding error
#define TRANSPOSED 64       // columns of x that are transposed at once
#define FEW_THREADS 4       // up to so many threads transpose all of x each for itself: faster than a barrier
#define LAST_ROWS 4         // rows in a tile at the end of a matrix
#define GROUPS 4            // tiles that are transposed back at once: full cache lines are written
#define BLOCK (GROUPS * TILE_ROWS)
#define SUM_ROWS (BLOCK + LAST_ROWS) // rows of sums: the last tile may go beyond the matrix
#define LARGE_BATCH 96               // activation rows per thread from which the threads share the batch,
#define PIECE 256                    // in pieces of so many, which stay in the cache

// What is multiplied.
typedef struct {
    const float *x, *const *weights, *const *biases; // one of the biases may be NULL
    float *out;                                      // (M, parts · N)
    long batch, parts, n, k;
    int activation;
} layer;

// Some rows of W, a chunk of each.
typedef struct {
    long row, rows, tile_rows; // `rows` from `row` on, in a tile of `tile_rows`
    long start, length;        // of the columns
} chunk;

// What is loaded while other rows are multiplied: `next` is copied to the buffer, `beyond` is prefetched.
typedef struct {
    const float *next, *beyond; // either may be NULL
    float *near;
    long rows, length, stride, beyond_rows;
} upcoming;

#define CACHE_LINE 16 // floats in a cache line
INLINE void load_upcoming(const upcoming *c, long i) {
    if (c->next && i + CACHE_LINE <= c->length)
        for (long r = 0; r < c->rows; r++) UNROLL for (int v = 0; v < CACHE_LINE; v += SIMD_WIDTH)
        store(c->near + r * STRIDE + i + v, load(c->next + r * c->stride + i + v));
    if (c->beyond)
        for (long r = 0; r < c->beyond_rows; r++) __builtin_prefetch(c->beyond + r * c->stride + i, 0, 2);
}

// sums[r][m] += Σ near[r][i] x[i][m] for one tile.
INLINE void add_products(const int rows, const int vecs, const float *near, const float *batch, long length,
                         float *sums, long stride, const upcoming *upcoming_rows) {
    for (long start = 0; start < length; start += PARTIAL_SUM) {
        long stop = min_long(start + PARTIAL_SUM, length);
        vec sum[TILE_ROWS][2] = {};
        for (long i = start; i < stop; i++) {
            if (upcoming_rows && i % CACHE_LINE == 0) load_upcoming(upcoming_rows, i);
            vec column[2];
            UNROLL for (int v = 0; v < vecs; v++) column[v] = load(batch + (i * vecs + v) * SIMD_WIDTH);
            UNROLL for (int r = 0; r < rows; r++)
                UNROLL for (int v = 0; v < vecs; v++) sum[r][v] += near[r * STRIDE + i] * column[v];
        }
        UNROLL for (int r = 0; r < rows; r++)
            UNROLL for (int v = 0; v < vecs; v++) {
                float *to = sums + r * stride + v * SIMD_WIDTH;
                store(to, load(to) + sum[r][v]);
            }
    }
}

// Separate functions: inlined into the long ones below, the compiler would run out of registers.
#define KERNEL(name, rows, vecs)                                                                                       \
    static NOINLINE void name(const float *near, const float *batch, long length, float *sums, long stride,            \
                              const upcoming *upcoming_rows) {                                                         \
        add_products(rows, vecs, near, batch, length, sums, stride, upcoming_rows);                                    \
    }
KERNEL(full_tile_one, TILE_ROWS, 1)
KERNEL(full_tile_two, TILE_ROWS, 2)
KERNEL(last_tile_one, LAST_ROWS, 1)
KERNEL(last_tile_two, LAST_ROWS, 2)

INLINE long padded_batch(long batch) { return (batch + SIMD_WIDTH - 1) / SIMD_WIDTH * SIMD_WIDTH; }

// Panel `first`, columns `start` to `start + TRANSPOSED`: transposed[i][m] = x[first + m][start + i], 0 beyond the
// batch.
static void transpose_panel(const float *x, long batch, long k, long first, long start, float *transposed) {
    long width = min_long(TILE_COLUMNS, padded_batch(batch) - first), filled = min_long(width, batch - first);
    long length = min_long(TRANSPOSED, k - start);
    float *to = transposed + first * k + start * width;
    if (filled < width) memset(to, 0, length * width * sizeof(float));
    transpose(x + first * k + start, k, to, width, filled, length);
}

static void transpose_all(const float *x, long batch, long k, float *transposed) {
    for (long first = 0; first < batch; first += TILE_COLUMNS)
        for (long start = 0; start < k; start += TRANSPOSED) transpose_panel(x, batch, k, first, start, transposed);
}

// Set the rows of a chunk that starts at `at->row`, with blocks counted from `from`; returns 0 if there are none.
static int set_chunk(const layer *p, long from, long to, chunk *at) {
    long left = min_long(BLOCK - (at->row - from) % BLOCK, to - at->row);
    at->tile_rows = left > 2 * LAST_ROWS || left == TILE_ROWS ? TILE_ROWS : LAST_ROWS;
    at->rows = min_long(at->tile_rows, left);
    at->length = min_long(CHUNK, p->k - at->start);
    return left > 0;
}

static int advance(const layer *p, long from, long to, chunk *at) {
    at->start += CHUNK;
    if (at->start >= p->k) at->row += at->rows, at->start = 0;
    return set_chunk(p, from, to, at);
}

// sums[r][m] for the rows of a chunk and all of the transposed batch; loads what comes next.
static void multiply_rows(const layer *p, const chunk *at, const float *bias, const float *transposed, long padded,
                          const float *near, float *sums, const upcoming *upcoming_rows) {
    if (at->start == 0)
        for (long r = 0; r < at->tile_rows; r++)
            for (long m = 0; m < padded; m += SIMD_WIDTH)
                store(sums + r * padded + m, broadcast(bias && r < at->rows ? bias[at->row + r] : 0));
    for (long first = 0; first < padded; first += TILE_COLUMNS) {
        int two = padded - first >= TILE_COLUMNS;
        const float *panel = transposed + first * p->k + at->start * (two ? TILE_COLUMNS : SIMD_WIDTH);
        (at->tile_rows == TILE_ROWS ? two ? full_tile_two : full_tile_one
         : two ? last_tile_two
               : last_tile_one)(near, panel, at->length, sums + first, padded, first == 0 ? upcoming_rows : 0);
    }
    if (upcoming_rows->next) { // the rest after full cache lines
        long done = min_long(at->length / CACHE_LINE * CACHE_LINE + (at->length % CACHE_LINE ? CACHE_LINE : 0),
                             upcoming_rows->length / CACHE_LINE * CACHE_LINE);
        for (long r = 0; r < upcoming_rows->rows; r++)
            memcpy(upcoming_rows->near + r * STRIDE + done, upcoming_rows->next + r * upcoming_rows->stride + done,
                   (upcoming_rows->length - done) * sizeof(float));
    }
}

// The results of `rows` rows from `row` on for the batch from `begin` on, activated and transposed back.
static void write_back(const layer *p, long part, long begin, long batch, long row, long rows, float *sums) {
    long padded = padded_batch(batch), width = p->parts * p->n;
    vec derivative;
    if (p->activation != NONE)
        for (float *at = sums; at < sums + rows * padded; at += SIMD_WIDTH)
            store(at, activation(load(at), p->activation, &derivative));
    float *out = p->out + begin * width + part * p->n + row;
    for (long m = 0; m < batch; m += SIMD_WIDTH) // SIMD_WIDTH rows at a time, so that cache lines are written in full
        transpose(sums + m, padded, out + m * width, width, rows, min_long(SIMD_WIDTH, batch - m));
}

// Prefetch the first of the rows `from` to `to`.
static void prefetch_first(const layer *p, long from, long to) {
    long rows = min_long(2 * TILE_ROWS, to - from), length = min_long(CHUNK, p->k);
    for (long i = 0; i < length; i += CACHE_LINE)
        for (long r = 0; r < rows; r++) __builtin_prefetch(p->weights[0] + (from + r) * p->k + i, 0, 2);
}

// The transposed batch from `begin` on times rows `from` to `to` of one of the matrices.
static void multiply(const layer *p, long part, const float *transposed, long begin, long batch, long from, long to,
                     float *near, float *sums) {
    const float *weight = p->weights[part], *bias = p->biases[part];
    long padded = padded_batch(batch), block = from;
    float *other = near + TILE_ROWS * STRIDE;
    chunk now = {.row = from};
    if (!set_chunk(p, from, to, &now)) return;
    for (long r = 0; r < now.rows; r++)
        memcpy(near + r * STRIDE, weight + (now.row + r) * p->k, now.length * sizeof(float));
    for (int has_next = 1; has_next;) {
        chunk next = now;
        has_next = advance(p, from, to, &next);
        chunk beyond = next;
        int has_beyond = has_next && advance(p, from, to, &beyond);
        upcoming upcoming_rows = {has_next ? weight + next.row * p->k + next.start : 0,
                                  has_beyond ? weight + beyond.row * p->k + beyond.start : 0,
                                  other,
                                  next.rows,
                                  next.length,
                                  p->k,
                                  beyond.rows};
        multiply_rows(p, &now, bias, transposed, padded, near, sums + (now.row - block) * padded, &upcoming_rows);
        if (!has_next || next.row - block >= BLOCK) {
            write_back(p, part, begin, batch, block, now.row + now.rows - block, sums);
            block = next.row;
        }
        float *read = near;
        near = other, other = read, now = next;
    }
}

// The threads share the matrices: each has some rows of all of them.
static void share_rows(const layer *p, float *shared_transposed, float *own_transposed, float *near, float *sums) {
    long team = omp_get_num_threads(), thread = omp_get_thread_num(), every = (p->n + LAST_ROWS - 1) / LAST_ROWS;
    long from = every * thread / team * LAST_ROWS, to = min_long(every * (thread + 1) / team * LAST_ROWS, p->n);
    prefetch_first(p, from, to); // while x is transposed
    float *transposed = team > FEW_THREADS ? shared_transposed : own_transposed;
    if (team <= FEW_THREADS) transpose_all(p->x, p->batch, p->k, transposed);
    else {
#pragma omp for collapse(2)
        for (long first = 0; first < p->batch; first += TILE_COLUMNS)
            for (long start = 0; start < p->k; start += TRANSPOSED)
                transpose_panel(p->x, p->batch, p->k, first, start, transposed);
    }
    for (long part = 0; part < p->parts; part++) multiply(p, part, transposed, 0, p->batch, from, to, near, sums);
}

// The threads share the batch: each has a part of it, piece by piece, and all of the matrices.
static void share_batch(const layer *p, float *transposed, float *near, float *sums) {
    long team = omp_get_num_threads(), thread = omp_get_thread_num(), vecs = padded_batch(p->batch) / SIMD_WIDTH;
    long from = vecs * thread / team * SIMD_WIDTH, to = min_long(vecs * (thread + 1) / team * SIMD_WIDTH, p->batch);
    long panels = (to - from + TILE_COLUMNS - 1) / TILE_COLUMNS, pieces = (panels * TILE_COLUMNS + PIECE - 1) / PIECE;
    for (long piece = 0; piece < pieces; piece++) { // of about equal size
        long begin = from + panels * piece / pieces * TILE_COLUMNS;
        long batch = min_long(from + panels * (piece + 1) / pieces * TILE_COLUMNS, to) - begin;
        transpose_all(p->x + begin * p->k, batch, p->k, transposed);
        for (long part = 0; part < p->parts; part++) multiply(p, part, transposed, begin, batch, 0, p->n, near, sums);
    }
}

// Floats that a team of threads needs for `batch` rows of x (M, K).
static long team_workspace(long batch, long k, int threads) {
    long piece = padded_batch(batch >= threads * LARGE_BATCH ? PIECE : batch); // rows that are transposed at once
    return threads * piece * (k + SUM_ROWS);
}

// Called by all threads of a team of as many. No barrier at the end.
static void linear_in_team(const float *x, const float *const *weights, const float *const *biases, float *out, long batch,
                    long parts, long n, long k, int activation, float *workspace) {
    layer p = {x, weights, biases, out, batch, parts, n, k, activation};
    long threads = omp_get_num_threads(), thread = omp_get_thread_num();
    int is_large = batch >= threads * LARGE_BATCH;
    long piece = padded_batch(is_large ? PIECE : batch);
    float near[2 * TILE_ROWS * STRIDE]; // the chunk that is multiplied, and the next one
    memset(near, 0, sizeof near);
    float *transposed = workspace, *sums = workspace + threads * piece * k + thread * SUM_ROWS * piece;
    if (is_large) share_batch(&p, transposed + thread * piece * k, near, sums);
    else share_rows(&p, transposed, transposed + thread * piece * k, near, sums);
}
