// Attention of few queries over many keys: a decoding step. The keys are read once for all queries that share them.
#include "attention.h"

#define SOON 8 // keys that are fetched before they are needed: a head's keys do not stand side by side in memory

INLINE void fetch(const float *from, long width) {
    for (long i = 0; i < width; i += 16) __builtin_prefetch(from + i);
}

// out = Σ weights[s] *values[s], of so many vectors; they stay in registers.
INLINE void weigh(const int vecs, const float *weights, const float *const *values, long start, long count, float *out) {
    vec sum[4] = {};
    for (long s = 0; s < count; s++)
        UNROLL for (int v = 0; v < vecs; v++) sum[v] += weights[s] * load(values[s] + start + v * LANES);
    UNROLL for (int v = 0; v < vecs; v++) store(out + start + v * LANES, sum[v]);
}

static void weighted_sum(const float *weights, const float *const *values, long count, long width, float *out) {
    long i = 0;
    for (; i + 4 * LANES <= width; i += 4 * LANES) weigh(4, weights, values, i, count, out);
    for (; i + LANES <= width; i += LANES) weigh(1, weights, values, i, count, out);
    for (; i < width; i++) {
        out[i] = 0;
        for (long s = 0; s < count; s++) out[i] += weights[s] * values[s][i];
    }
}

// query (B, H, T, K), key and value (B, H / group, S, K), mask (B, S) of bytes or none; out (B, T, H, K) side by side.
// The strides of the first three say how far apart rows, heads and places stand; the numbers of a head stand together.
// Place s of text b stands in row origin[b][s] of key and value, or, without origin (B, S), in row b.
int attend(const float *query, const float *key, const float *value, const uint8_t *mask, const int32_t *origin,
           float *out, long rows, long heads, long group, long queries, long keys, long width, long query_row, long query_head,
           long query_place, long key_row, long key_head, long key_place, long value_row, long value_head,
           long value_place, long mask_row, float scale, int threads) {
    long shared = heads / group, room = (keys + LANES - 1) / LANES * LANES;
    int short_of_memory = 0;
#pragma omp parallel num_threads(threads) reduction(| : short_of_memory)
    {
        float *scores = malloc(room * sizeof(float));
        const float **keys_at = malloc(keys * sizeof(float *)), **values_at = malloc(keys * sizeof(float *));
        short_of_memory = !scores || !keys_at || !values_at;
#pragma omp for
        for (long task = 0; task < rows * shared; task++) {
            if (short_of_memory) continue;
            long row = task / shared, head = task % shared;
            long seen = 0; // keys that may be
            for (long s = 0; s < keys; s++) {
                if (mask && !mask[row * mask_row + s]) continue;
                long from = origin ? origin[row * keys + s] : row;
                keys_at[seen] = key + from * key_row + head * key_head + s * key_place;
                values_at[seen++] = value + from * value_row + head * value_head + s * value_place;
            }
            for (long one = 0; one < group * queries; one++) { // all queries that look at these keys
                long own = head * group + one / queries, place = one % queries;
                const float *asked = query + row * query_row + own * query_head + place * query_place;
                for (long s = 0; s < seen; s++) {
                    if (one == 0) {
                        fetch(values_at[s], width);
                        if (s + SOON < seen) fetch(keys_at[s + SOON], width);
                    }
                    scores[s] = scale * product(asked, keys_at[s], width);
                }
                softmax(scores, seen);
                weighted_sum(scores, values_at, seen, width, out + ((row * queries + place) * heads + own) * width);
            }
        }
        free(scores);
        free(keys_at);
        free(values_at);
    }
    return short_of_memory;
}
