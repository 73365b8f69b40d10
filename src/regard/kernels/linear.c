// x Wᵀ + b for some words x (M, K) and a matrix W (N, K), in float32.
//
// The matrix is large and read once, the words are few and stay in the cache. So the words are turned once, (K, M), and
// cut into panels of two vectors; then each number of W is multiplied with a vector of words: ROWS × 2 vectors of sums
// stay in registers, and nothing is added up across a vector. Rows of W are copied to near memory first, a chunk of each
// (rows a power of two apart would push each other out of the cache), and those to come are fetched meanwhile.
#include "vectors.h"
#include <omp.h>

#define CHUNK 512           // numbers of a row of W that are near at once
#define STRIDE (CHUNK + 16) // their distance: no power of two
#define EXACT 64            // products that are added up by themselves: rounding adds up less in short sums
#define TURNED 64           // columns of x that are turned at once
#define GROUPS 4            // groups of ROWS rows that are turned back at once, of a matrix with
#define MANY_ROWS 1024      // so many rows; of a smaller one each by itself: the threads share them evenly

// sums[r][m] += Σ near[r][i] words[i][m], for ROWS rows and `vecs` vectors of words.
INLINE void add_products(const int vecs, const float *near, const float *words, long length, float *sums, long stride,
                         const float *ahead, long ahead_stride) {
    for (long start = 0; start < length; start += EXACT) {
        long stop = smaller(start + EXACT, length);
        vec sum[ROWS][2] = {};
        for (long i = start; i < stop; i++) {
            if (ahead && i % 16 == 0) // a line of memory has 16 numbers
                for (int r = 0; r < ROWS; r++) __builtin_prefetch(ahead + r * ahead_stride + i, 0, 2);
            vec word[2];
            UNROLL for (int v = 0; v < vecs; v++) word[v] = load(words + (i * vecs + v) * LANES);
            UNROLL for (int r = 0; r < ROWS; r++)
                UNROLL for (int v = 0; v < vecs; v++) sum[r][v] += near[r * STRIDE + i] * word[v];
        }
        UNROLL for (int r = 0; r < ROWS; r++)
            UNROLL for (int v = 0; v < vecs; v++) {
                float *to = sums + r * stride + v * LANES;
                store(to, load(to) + sum[r][v]);
            }
    }
}

// Functions of their own: inside the long one below the compiler would run out of registers.
static ALONE void one_vector(const float *near, const float *words, long length, float *sums, long stride,
                             const float *ahead, long ahead_stride) {
    add_products(1, near, words, length, sums, stride, ahead, ahead_stride);
}
static ALONE void two_vectors(const float *near, const float *words, long length, float *sums, long stride,
                              const float *ahead, long ahead_stride) {
    add_products(2, near, words, length, sums, stride, ahead, ahead_stride);
}

// Panel `first` of the words, columns `start` to `start + length`: turned[i][m] = x[first + m][start + i], 0 beyond M.
static void turn(const float *x, long words, long k, long padded, long first, long start, float *turned) {
    long width = smaller(PANEL, padded - first), given = smaller(width, words - first);
    long length = smaller(TURNED, k - start);
    float *to = turned + first * k + start * width;
    if (given < width) memset(to, 0, length * width * sizeof(float));
    transpose(x + first * k + start, k, to, width, given, length);
}

// sums[r][m] for ROWS rows of W from `row` on, of which `rows` exist, and all words.
static void multiply_rows(const float *weight, const float *bias, const float *turned, long row, long rows, long n, long k,
                          long padded, float *near, float *sums) {
    for (long r = 0; r < ROWS; r++)
        for (long m = 0; m < padded; m++) sums[r * padded + m] = bias && r < rows ? bias[row + r] : 0;
    for (long start = 0; start < k; start += CHUNK) {
        long length = smaller(CHUNK, k - start);
        const float *from = weight + row * k + start;
        for (long r = 0; r < rows; r++) memcpy(near + r * STRIDE, from + r * k, length * sizeof(float));
        for (long first = 0; first < padded; first += PANEL) {
            const float *ahead = first == 0 && row + 2 * ROWS <= n ? from + ROWS * k : 0;
            if (padded - first >= PANEL)
                two_vectors(near, turned + first * k + start * PANEL, length, sums + first, padded, ahead, k);
            else
                one_vector(near, turned + first * k + start * LANES, length, sums + first, padded, ahead, k);
        }
    }
}

// 0, or 1 where memory is short. bias (N) may be missing. out is (M, N).
int linear(const float *x, const float *weight, const float *bias, float *out, long words, long n, long k, int threads) {
    long padded = (words + LANES - 1) / LANES * LANES;
    // Results are turned back several groups of rows at a time, so that whole lines of memory are written.
    long block = (n < MANY_ROWS ? 1 : GROUPS) * ROWS;
    float *turned = room_for(padded * k * sizeof(float));
    float *every_sum = room_for(threads * block * padded * sizeof(float));
    int short_of_memory = !turned || !every_sum;
#pragma omp parallel num_threads(threads) if (!short_of_memory)
    if (!short_of_memory) {
#pragma omp for collapse(2)
        for (long first = 0; first < padded; first += PANEL)
            for (long start = 0; start < k; start += TURNED) turn(x, words, k, padded, first, start, turned);
        float near[ROWS * STRIDE];
        memset(near, 0, sizeof near);
        float *sums = every_sum + omp_get_thread_num() * block * padded;
#pragma omp for
        for (long row = 0; row < n; row += block) {
            long rows = smaller(block, n - row);
            for (long r = 0; r < rows; r += ROWS)
                multiply_rows(weight, bias, turned, row + r, smaller(ROWS, rows - r), n, k, padded, near, sums + r * padded);
            for (long m = 0; m < words; m += 4) // a few words at a time: a line is written whole before it is left
                transpose(sums + m, padded, out + m * n + row, n, rows, smaller(4, words - m));
        }
    }
    free(turned);
    free(every_sum);
    return short_of_memory;
}
