// Attention of whole texts that stand behind each other in one row, each seeing itself alone: no padding, no mask.
//
// The keys of a head are turned, so that a vector holds the same number of many keys; then some queries at once are
// multiplied with two vectors of keys, and their weights with two vectors of a value: all sums stay in registers.
#include "softmax.h"

#define QUERIES 6 // at once

// The numbers of one head: those of a place stand together, the places so far apart.
typedef struct {
    const float *at;
    long place;
} one_head;

// scores[q][s] = scale · Σ query[q][i] keys[i][s] for some queries and two vectors of keys.
static NOINLINE void score(const float *const *query, const float *keys, long keys_stride, long width, float scale,
                        float *scores, long stride) {
    vec sum[QUERIES][2] = {};
    for (long i = 0; i < width; i++) {
        vec one = load(keys + i * keys_stride), other = load(keys + i * keys_stride + SIMD_WIDTH);
        UNROLL for (int q = 0; q < QUERIES; q++) {
            sum[q][0] += query[q][i] * one;
            sum[q][1] += query[q][i] * other;
        }
    }
    UNROLL for (int q = 0; q < QUERIES; q++) {
        store(scores + q * stride, sum[q][0] * scale);
        store(scores + q * stride + SIMD_WIDTH, sum[q][1] * scale);
    }
}

// out[q] = Σ weights[q][s] value[s], for some queries and `vecs` vectors of a value.
INLINE void weigh_values(const int vecs, const float *weights, long stride, const float *value, long place, long count,
                         float *const *out) {
    vec sum[QUERIES][2] = {};
    for (long s = 0; s < count; s++) {
        vec part[2];
        UNROLL for (int v = 0; v < vecs; v++) part[v] = load(value + s * place + v * SIMD_WIDTH);
        UNROLL for (int q = 0; q < QUERIES; q++)
            UNROLL for (int v = 0; v < vecs; v++) sum[q][v] += weights[q * stride + s] * part[v];
    }
    UNROLL for (int q = 0; q < QUERIES; q++)
        UNROLL for (int v = 0; v < vecs; v++) store(out[q] + v * SIMD_WIDTH, sum[q][v]);
}
static NOINLINE void weigh_two(const float *weights, long stride, const float *value, long place, long count,
                            float *const *out) {
    weigh_values(2, weights, stride, value, place, count, out);
}
static NOINLINE void weigh_one(const float *weights, long stride, const float *value, long place, long count,
                            float *const *out) {
    weigh_values(1, weights, stride, value, place, count, out);
}

// One head of one text of `count` places. keys has room for (width, padded), scores for (QUERIES, padded).
static void attend_text(one_head query, one_head key, one_head value, long count, long width, float scale, float *out,
                        long out_place, float *keys, float *scores, float *nowhere) {
    long padded = (count + TILE_COLUMNS - 1) / TILE_COLUMNS * TILE_COLUMNS;
    for (long i = 0; i < width; i++) memset(keys + i * padded + count, 0, (padded - count) * sizeof(float));
    transpose(key.at, key.place, keys, padded, count, width);
    for (long first = 0; first < count; first += QUERIES) {
        const float *asked[QUERIES];
        float *to[QUERIES];
        for (long q = 0; q < QUERIES; q++) { // what is beyond the last is the last again, and goes nowhere
            asked[q] = query.at + min_long(first + q, count - 1) * query.place;
            to[q] = first + q < count ? out + (first + q) * out_place : nowhere;
        }
        for (long s = 0; s < padded; s += TILE_COLUMNS) score(asked, keys + s, padded, width, scale, scores + s, padded);
        for (long q = 0; q < QUERIES; q++) softmax(scores + q * padded, count);
        for (long i = 0; i < width; i += i + TILE_COLUMNS <= width ? TILE_COLUMNS : SIMD_WIDTH) {
            float *here[QUERIES];
            for (long q = 0; q < QUERIES; q++) here[q] = to[q] + i;
            (i + TILE_COLUMNS <= width ? weigh_two : weigh_one)(scores, padded, value.at + i, value.place, count, here);
        }
    }
}

// query, key and value (places, H, K), out likewise and side by side; text n stands at places bounds[n] to bounds[n + 1].
// K is a whole number of vectors. 0, or 1 where memory is short.
int attention_varlen(const float *query, const float *key, const float *value, float *out, const int64_t *bounds, long texts,
                  long longest, long heads, long width, long query_place, long query_head, long key_place, long key_head,
                  long value_place, long value_head, float scale, int threads) {
    long padded = (longest + TILE_COLUMNS - 1) / TILE_COLUMNS * TILE_COLUMNS;
    int out_of_memory = 0;
#pragma omp parallel num_threads(threads) reduction(| : out_of_memory)
    {
        float *keys = allocate(width * padded * sizeof(float)), *scores = allocate(QUERIES * padded * sizeof(float));
        float *nowhere = allocate(width * sizeof(float));
        out_of_memory = !keys || !scores || !nowhere;
#pragma omp for schedule(dynamic)
        for (long task = 0; task < texts * heads; task++) {
            if (out_of_memory) continue;
            long head = task % heads, begin = bounds[task / heads], count = bounds[task / heads + 1] - begin;
            one_head q = {query + begin * query_place + head * query_head, query_place};
            one_head k = {key + begin * key_place + head * key_head, key_place};
            one_head v = {value + begin * value_place + head * value_head, value_place};
            attend_text(q, k, v, count, width, scale, out + (begin * heads + head) * width, heads * width, keys, scores,
                        nowhere);
        }
        free(keys);
        free(scores);
        free(nowhere);
    }
    return out_of_memory;
}
