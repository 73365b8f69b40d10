// Attention of an unpadded (varlen) batch: sequences concatenated in one row, each attending to itself alone.
//
// The keys of a head are transposed, so that a vector holds one component of many keys. A tile is a few queries times
// two vectors of keys, and then their weights times two vectors of values: all sums stay in registers.
#include "softmax.h"

#define QUERIES 6 // in one tile

// One head: the components of a position are contiguous, the positions `stride` apart.
typedef struct {
    const float *at;
    long stride;
} one_head;

// scores[q][s] = scale · Σ query[q][i] keys[i][s] for one tile.
static NOINLINE void score(const float *const *query, const float *keys, long keys_stride, long width, float scale,
                           float *scores, long stride) {
    vec sum[QUERIES][2] = {};
    for (long i = 0; i < width; i++) {
        vec first_keys = load(keys + i * keys_stride), second_keys = load(keys + i * keys_stride + SIMD_WIDTH);
        UNROLL for (int q = 0; q < QUERIES; q++) {
            sum[q][0] += query[q][i] * first_keys;
            sum[q][1] += query[q][i] * second_keys;
        }
    }
    UNROLL for (int q = 0; q < QUERIES; q++) {
        store(scores + q * stride, sum[q][0] * scale);
        store(scores + q * stride + SIMD_WIDTH, sum[q][1] * scale);
    }
}

// out[q] = Σ weights[q][s] value[s] for QUERIES queries and `vecs` vectors of the values.
INLINE void weighted_sum(const int vecs, const float *weights, long stride, const float *value, long value_stride,
                         long count, float *const *out) {
    vec sum[QUERIES][2] = {};
    for (long s = 0; s < count; s++) {
        vec part[2];
        UNROLL for (int v = 0; v < vecs; v++) part[v] = load(value + s * value_stride + v * SIMD_WIDTH);
        UNROLL for (int q = 0; q < QUERIES; q++)
            UNROLL for (int v = 0; v < vecs; v++) sum[q][v] += weights[q * stride + s] * part[v];
    }
    UNROLL for (int q = 0; q < QUERIES; q++)
        UNROLL for (int v = 0; v < vecs; v++) store(out[q] + v * SIMD_WIDTH, sum[q][v]);
}
static NOINLINE void weighted_sum_two(const float *weights, long stride, const float *value, long value_stride,
                                      long count, float *const *out) {
    weighted_sum(2, weights, stride, value, value_stride, count, out);
}
static NOINLINE void weighted_sum_one(const float *weights, long stride, const float *value, long value_stride,
                                      long count, float *const *out) {
    weighted_sum(1, weights, stride, value, value_stride, count, out);
}

// One head of one sequence of `count` positions. Workspaces: keys (width, padded), scores (QUERIES, padded).
static void attend_sequence(one_head query, one_head key, one_head value, long count, long width, float scale,
                            float *out, long out_stride, float *keys, float *scores, float *discarded) {
    long padded = (count + TILE_COLUMNS - 1) / TILE_COLUMNS * TILE_COLUMNS;
    for (long i = 0; i < width; i++) memset(keys + i * padded + count, 0, (padded - count) * sizeof(float));
    transpose(key.at, key.stride, keys, padded, count, width);
    for (long first = 0; first < count; first += QUERIES) {
        const float *queries[QUERIES];
        float *results[QUERIES];
        for (long q = 0; q < QUERIES; q++) { // queries beyond the last repeat it, and their results are discarded
            queries[q] = query.at + min_long(first + q, count - 1) * query.stride;
            results[q] = first + q < count ? out + (first + q) * out_stride : discarded;
        }
        for (long s = 0; s < padded; s += TILE_COLUMNS)
            score(queries, keys + s, padded, width, scale, scores + s, padded);
        for (long q = 0; q < QUERIES; q++) softmax(scores + q * padded, count);
        for (long i = 0; i < width; i += i + TILE_COLUMNS <= width ? TILE_COLUMNS : SIMD_WIDTH) {
            float *part_of_out[QUERIES];
            for (long q = 0; q < QUERIES; q++) part_of_out[q] = results[q] + i;
            (i + TILE_COLUMNS <= width ? weighted_sum_two : weighted_sum_one)(scores, padded, value.at + i,
                                                                              value.stride, count, part_of_out);
        }
    }
}

// query, key and value (T, H, K) with strides, out (T, H, K) contiguous. Sequence n has positions cu_seqlens[n] to
// cu_seqlens[n + 1], at most max_seqlen. K is a multiple of SIMD_WIDTH. Returns OUT_OF_MEMORY on failure.
int attention_varlen(const float *query, const float *key, const float *value, float *out, const int64_t *cu_seqlens,
                     long sequences, long max_seqlen, long heads, long width, long query_position, long query_head,
                     long key_position, long key_head, long value_position, long value_head, float scale, int threads) {
    long padded = (max_seqlen + TILE_COLUMNS - 1) / TILE_COLUMNS * TILE_COLUMNS;
    int out_of_memory = 0;
#pragma omp parallel num_threads(threads) reduction(| : out_of_memory)
    {
        float *keys = allocate(width * padded * sizeof(float)), *scores = allocate(QUERIES * padded * sizeof(float));
        float *discarded = allocate(width * sizeof(float));
        out_of_memory = !keys || !scores || !discarded;
#pragma omp for schedule(dynamic)
        for (long task = 0; task < sequences * heads; task++) {
            if (out_of_memory) continue;
            long head = task % heads, begin = cu_seqlens[task / heads], count = cu_seqlens[task / heads + 1] - begin;
            one_head q = {query + begin * query_position + head * query_head, query_position};
            one_head k = {key + begin * key_position + head * key_head, key_position};
            one_head v = {value + begin * value_position + head * value_head, value_position};
            attend_sequence(q, k, v, count, width, scale, out + (begin * heads + head) * width, heads * width, keys,
                            scores, discarded);
        }
        free(keys);
        free(scores);
        free(discarded);
    }
    return out_of_memory;
}
