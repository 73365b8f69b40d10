// Attention of few queries over many keys: one decoding step. Keys are read once for all queries that share them.
#include "softmax.h"

#define PREFETCH_DISTANCE 8 // keys: those of one head are not contiguous, so the hardware does not prefetch them

INLINE void prefetch(const float *from, long width) {
    for (long i = 0; i < width; i += 16) __builtin_prefetch(from + i);
}

// out = Σ weights[s] · values[s] for `vecs` vectors of the head; the sums stay in registers.
INLINE void weighted_vectors(const int vecs, const float *weights, const float *const *values, long start, long count,
                             float *out) {
    vec sum[4] = {};
    for (long s = 0; s < count; s++)
        UNROLL for (int v = 0; v < vecs; v++) sum[v] += weights[s] * load(values[s] + start + v * SIMD_WIDTH);
    UNROLL for (int v = 0; v < vecs; v++) store(out + start + v * SIMD_WIDTH, sum[v]);
}

static void weighted_sum(const float *weights, const float *const *values, long count, long width, float *out) {
    long i = 0;
    for (; i + 4 * SIMD_WIDTH <= width; i += 4 * SIMD_WIDTH) weighted_vectors(4, weights, values, i, count, out);
    for (; i + SIMD_WIDTH <= width; i += SIMD_WIDTH) weighted_vectors(1, weights, values, i, count, out);
    for (; i < width; i++) {
        out[i] = 0;
        for (long s = 0; s < count; s++) out[i] += weights[s] * values[s][i];
    }
}

// query (B, H, T, K), key and value (R, H / group, S, K), mask (B, S) of bytes or NULL; out (B, T, H, K), contiguous.
// The strides are those of the batch, head and position dimensions; the K numbers of a head are contiguous.
// Position s of batch row b is stored in row cache_rows[b][s] of key and value, or in row b if cache_rows is NULL.
// Returns OUT_OF_MEMORY, or OUT_OF_RANGE if an entry of cache_rows is not a row of the cache.
int attention_decode(const float *query, const float *key, const float *value, const uint8_t *mask,
                     const int32_t *cache_rows, float *out, long batch, long cache_size, long heads, long group,
                     long queries, long keys, long width, long query_batch, long query_head, long query_position,
                     long key_batch, long key_head, long key_position, long value_batch, long value_head,
                     long value_position, long mask_batch, float scale, int threads) {
    if (cache_rows)
        for (long i = 0; i < batch * keys; i++)
            if (cache_rows[i] < 0 || cache_rows[i] >= cache_size) return OUT_OF_RANGE;
    long kv_heads = heads / group, room = (keys + SIMD_WIDTH - 1) / SIMD_WIDTH * SIMD_WIDTH;
    int out_of_memory = 0;
#pragma omp parallel num_threads(threads) reduction(| : out_of_memory)
    {
        float *scores = malloc(room * sizeof(float));
        const float **keys_at = malloc(keys * sizeof(float *)), **values_at = malloc(keys * sizeof(float *));
        out_of_memory = !scores || !keys_at || !values_at;
#pragma omp for
        for (long task = 0; task < batch * kv_heads; task++) {
            if (out_of_memory) continue;
            long row = task / kv_heads, head = task % kv_heads;
            long visible = 0; // keys that the mask allows
            for (long s = 0; s < keys; s++) {
                if (mask && !mask[row * mask_batch + s]) continue;
                long from = cache_rows ? cache_rows[row * keys + s] : row;
                keys_at[visible] = key + from * key_batch + head * key_head + s * key_position;
                values_at[visible++] = value + from * value_batch + head * value_head + s * value_position;
            }
            for (long one = 0; one < group * queries; one++) { // all queries that share these keys
                long own = head * group + one / queries, position = one % queries;
                const float *q = query + row * query_batch + own * query_head + position * query_position;
                for (long s = 0; s < visible; s++) {
                    if (one == 0) {
                        prefetch(values_at[s], width);
                        if (s + PREFETCH_DISTANCE < visible) prefetch(keys_at[s + PREFETCH_DISTANCE], width);
                    }
                    scores[s] = scale * dot_product(q, keys_at[s], width);
                }
                softmax(scores, visible);
                weighted_sum(scores, values_at, visible, width,
                             out + ((row * queries + position) * heads + own) * width);
            }
        }
        free(scores);
        free(keys_at);
        free(values_at);
    }
    return out_of_memory ? OUT_OF_MEMORY : 0;
}
