// x Wᵀ + b for words x (M, K) and a matrix W (N, K), or several side by side, in float32; then an activation.
//
// The words are turned, (K, M), and cut into panels of two vectors; then each number of W is multiplied with a vector of
// words: TILE_ROWS × 2 vectors of sums stay in registers, and nothing is added up across a vector. Rows of W are copied to
// near memory first, a chunk of each (rows a power of two apart would push each other out of the cache), while those
// before them are multiplied. Of few words the cores share the matrix, which is read once; of many each has its own.
#include "activation.h"
#include <omp.h>

#define CHUNK 256           // numbers of a row of W that are near at once
#define STRIDE (CHUNK + 16) // their distance: no power of two
#define EXACT 128           // products that are added up by themselves: rounding adds up less in short sums
#define TURNED 64           // columns of x that are turned at once
#define FEW 4               // so many cores turn all words each for itself: sooner done than waiting for each other
#define LAST 4              // the last rows of a matrix are multiplied so many at once
#define GROUPS 4            // groups of TILE_ROWS rows that are turned back at once: whole lines of memory are written
#define BLOCK (GROUPS * TILE_ROWS)
#define ROOM (BLOCK + LAST) // rows of sums: the last ones may be none of the matrix's
#define MANY 96             // words a core from which each core has words of its own,
#define PIECE 256           // so many at a time: they stay in its cache

// What is multiplied.
typedef struct {
    const float *x, *const *weights, *const *biases; // biases, or one of them, may be missing
    float *out;                                      // (M, parts · N)
    long words, parts, n, k;
    int activation;
} layer;

// Some rows of W, a chunk of each.
typedef struct {
    long row, rows, fused_qkv; // `rows` from `row` on, multiplied `fused_qkv` at once
    long start, length;      // of the numbers of each
} place;

// What is brought near while other rows are multiplied: `next` is copied, `beyond` is fetched.
typedef struct {
    const float *next, *beyond; // either may be missing
    float *near;
    long rows, length, stride, beyond_rows;
} to_come;

#define LINE 16 // numbers in a line of memory
INLINE void bring(const to_come *c, long i) {
    if (c->next && i + LINE <= c->length)
        for (long r = 0; r < c->rows; r++)
            UNROLL for (int v = 0; v < LINE; v += SIMD_WIDTH)
                store(c->near + r * STRIDE + i + v, load(c->next + r * c->stride + i + v));
    if (c->beyond)
        for (long r = 0; r < c->beyond_rows; r++) __builtin_prefetch(c->beyond + r * c->stride + i, 0, 2);
}

// sums[r][m] += Σ near[r][i] words[i][m], for some rows and vectors of words.
INLINE void add_products(const int rows, const int vecs, const float *near, const float *words, long length, float *sums,
                         long stride, const to_come *come) {
    for (long start = 0; start < length; start += EXACT) {
        long stop = min_long(start + EXACT, length);
        vec sum[TILE_ROWS][2] = {};
        for (long i = start; i < stop; i++) {
            if (come && i % LINE == 0) bring(come, i);
            vec word[2];
            UNROLL for (int v = 0; v < vecs; v++) word[v] = load(words + (i * vecs + v) * SIMD_WIDTH);
            UNROLL for (int r = 0; r < rows; r++)
                UNROLL for (int v = 0; v < vecs; v++) sum[r][v] += near[r * STRIDE + i] * word[v];
        }
        UNROLL for (int r = 0; r < rows; r++)
            UNROLL for (int v = 0; v < vecs; v++) {
                float *to = sums + r * stride + v * SIMD_WIDTH;
                store(to, load(to) + sum[r][v]);
            }
    }
}

// Functions of their own: inside the long ones below the compiler would run out of registers.
#define KERNEL(name, rows, vecs)                                                                                       \
    static NOINLINE void name(const float *near, const float *words, long length, float *sums, long stride,               \
                           const to_come *come) {                                                                      \
        add_products(rows, vecs, near, words, length, sums, stride, come);                                             \
    }
KERNEL(rows_and_one, TILE_ROWS, 1)
KERNEL(rows_and_two, TILE_ROWS, 2)
KERNEL(last_and_one, LAST, 1)
KERNEL(last_and_two, LAST, 2)

INLINE long whole_vectors(long words) { return (words + SIMD_WIDTH - 1) / SIMD_WIDTH * SIMD_WIDTH; }

// Panel `first` of some words, columns `start` to `start + TURNED`: turned[i][m] = x[first + m][start + i], 0 beyond them.
static void turn(const float *x, long words, long k, long first, long start, float *turned) {
    long width = min_long(TILE_COLUMNS, whole_vectors(words) - first), given = min_long(width, words - first);
    long length = min_long(TURNED, k - start);
    float *to = turned + first * k + start * width;
    if (given < width) memset(to, 0, length * width * sizeof(float));
    transpose(x + first * k + start, k, to, width, given, length);
}

static void turn_all(const float *x, long words, long k, float *turned) {
    for (long first = 0; first < words; first += TILE_COLUMNS)
        for (long start = 0; start < k; start += TURNED) turn(x, words, k, first, start, turned);
}

// The place with these rows in it, the first of a block at `from`; 0: there are none.
static int set(const layer *p, long from, long to, place *at) {
    long left = min_long(BLOCK - (at->row - from) % BLOCK, to - at->row);
    at->fused_qkv = left > 2 * LAST || left == TILE_ROWS ? TILE_ROWS : LAST;
    at->rows = min_long(at->fused_qkv, left);
    at->length = min_long(CHUNK, p->k - at->start);
    return left > 0;
}

static int advance(const layer *p, long from, long to, place *at) {
    at->start += CHUNK;
    if (at->start >= p->k) at->row += at->rows, at->start = 0;
    return set(p, from, to, at);
}

// sums[r][m] for the rows of a place and all words that were turned; what is to come is brought near.
static void multiply_rows(const layer *p, const place *at, const float *bias, const float *turned, long padded,
                          const float *near, float *sums, const to_come *come) {
    if (at->start == 0)
        for (long r = 0; r < at->fused_qkv; r++)
            for (long m = 0; m < padded; m += SIMD_WIDTH)
                store(sums + r * padded + m, broadcast(bias && r < at->rows ? bias[at->row + r] : 0));
    for (long first = 0; first < padded; first += TILE_COLUMNS) {
        int two = padded - first >= TILE_COLUMNS;
        const float *panel = turned + first * p->k + at->start * (two ? TILE_COLUMNS : SIMD_WIDTH);
        (at->fused_qkv == TILE_ROWS ? two ? rows_and_two : rows_and_one : two ? last_and_two : last_and_one)(
            near, panel, at->length, sums + first, padded, first == 0 ? come : 0);
    }
    if (come->next) { // what a line at a time left behind
        long done = min_long(at->length / LINE * LINE + (at->length % LINE ? LINE : 0), come->length / LINE * LINE);
        for (long r = 0; r < come->rows; r++)
            memcpy(come->near + r * STRIDE + done, come->next + r * come->stride + done,
                   (come->length - done) * sizeof(float));
    }
}

// The results of `rows` rows from `row` on for the words from `begin` on, activated and turned back.
static void write_back(const layer *p, long part, long begin, long words, long row, long rows, float *sums) {
    long padded = whole_vectors(words), width = p->parts * p->n;
    vec slope;
    if (p->activation != NONE)
        for (float *at = sums; at < sums + rows * padded; at += SIMD_WIDTH)
            store(at, passing(load(at), p->activation, &slope));
    float *out = p->out + begin * width + part * p->n + row;
    for (long m = 0; m < words; m += SIMD_WIDTH) // a few words at a time: a line is written whole before it is left
        transpose(sums + m, padded, out + m * width, width, rows, min_long(SIMD_WIDTH, words - m));
}

// The first of the rows `from` to `to` are fetched: they are wanted soon.
static void fetch_first(const layer *p, long from, long to) {
    long rows = min_long(2 * TILE_ROWS, to - from), length = min_long(CHUNK, p->k);
    for (long i = 0; i < length; i += LINE)
        for (long r = 0; r < rows; r++) __builtin_prefetch(p->weights[0] + (from + r) * p->k + i, 0, 2);
}

// The words from `begin` on, which were turned, with rows `from` to `to` of one of the matrices.
static void multiply(const layer *p, long part, const float *turned, long begin, long words, long from, long to,
                     float *near, float *sums) {
    const float *weight = p->weights[part], *bias = p->biases ? p->biases[part] : 0;
    long padded = whole_vectors(words), block = from;
    float *other = near + TILE_ROWS * STRIDE;
    place now = {.row = from};
    if (!set(p, from, to, &now)) return;
    for (long r = 0; r < now.rows; r++)
        memcpy(near + r * STRIDE, weight + (now.row + r) * p->k, now.length * sizeof(float));
    for (int more = 1; more;) {
        place next = now;
        more = advance(p, from, to, &next);
        place beyond = next;
        int yet = more && advance(p, from, to, &beyond);
        to_come come = {more ? weight + next.row * p->k + next.start : 0,
                        yet ? weight + beyond.row * p->k + beyond.start : 0,
                        other, next.rows, next.length, p->k, beyond.rows};
        multiply_rows(p, &now, bias, turned, padded, near, sums + (now.row - block) * padded, &come);
        if (!more || next.row - block >= BLOCK) {
            write_back(p, part, begin, words, block, now.row + now.rows - block, sums);
            block = next.row;
        }
        float *read = near;
        near = other, other = read, now = next;
    }
}

// The cores share the matrices: each has some rows of all of them.
static void share_rows(const layer *p, float *all_turned, float *own_turned, float *near, float *sums) {
    long cores = omp_get_num_threads(), core = omp_get_thread_num(), every = (p->n + LAST - 1) / LAST;
    long from = every * core / cores * LAST, to = min_long(every * (core + 1) / cores * LAST, p->n);
    fetch_first(p, from, to); // memory works meanwhile
    float *turned = cores > FEW ? all_turned : own_turned;
    if (cores <= FEW) turn_all(p->x, p->words, p->k, turned);
    else {
#pragma omp for collapse(2)
        for (long first = 0; first < p->words; first += TILE_COLUMNS)
            for (long start = 0; start < p->k; start += TURNED) turn(p->x, p->words, p->k, first, start, turned);
    }
    for (long part = 0; part < p->parts; part++) multiply(p, part, turned, 0, p->words, from, to, near, sums);
}

// The cores share the words: each has some of them, a piece after the other, and all of the matrices.
static void share_words(const layer *p, float *turned, float *near, float *sums) {
    long cores = omp_get_num_threads(), core = omp_get_thread_num(), vecs = whole_vectors(p->words) / SIMD_WIDTH;
    long from = vecs * core / cores * SIMD_WIDTH, to = min_long(vecs * (core + 1) / cores * SIMD_WIDTH, p->words);
    long panels = (to - from + TILE_COLUMNS - 1) / TILE_COLUMNS, pieces = (panels * TILE_COLUMNS + PIECE - 1) / PIECE;
    for (long piece = 0; piece < pieces; piece++) { // none is much smaller than the others
        long begin = from + panels * piece / pieces * TILE_COLUMNS;
        long words = min_long(from + panels * (piece + 1) / pieces * TILE_COLUMNS, to) - begin;
        turn_all(p->x + begin * p->k, words, p->k, turned);
        for (long part = 0; part < p->parts; part++) multiply(p, part, turned, begin, words, 0, p->n, near, sums);
    }
}

// 0, or 1 where memory is short.
int linear(const float *x, const float *const *weights, const float *const *biases, float *out, long words, long parts,
           long n, long k, int activation, int threads) {
    layer p = {x, weights, biases, out, words, parts, n, k, activation};
    int many = words >= threads * MANY;
    long piece = whole_vectors(many ? PIECE : words); // words that are turned at once
    float *turned = allocate(threads * piece * k * sizeof(float));
    float *every_sum = allocate(threads * ROOM * piece * sizeof(float));
    int out_of_memory = !turned || !every_sum;
#pragma omp parallel num_threads(threads) if (!out_of_memory)
    if (!out_of_memory) {
        float near[2 * TILE_ROWS * STRIDE]; // what is multiplied, and what comes next
        memset(near, 0, sizeof near);
        long core = omp_get_thread_num();
        float *sums = every_sum + core * ROOM * piece;
        if (many) share_words(&p, turned + core * piece * k, near, sums);
        else share_rows(&p, turned, turned + core * piece * k, near, sums);
    }
    free(turned);
    free(every_sum);
    return out_of_memory;
}
