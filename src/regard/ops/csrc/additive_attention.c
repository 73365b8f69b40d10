// One step of additive attention, forward and backward: v · tanh(q + k) for the keys that the mask allows, softmax, and
// the weighted sum of the values. The backward pass computes tanh once more: that is cheaper than to write and read it.
#include "activation.h"
#include <math.h>

INLINE vec tail_of(vec lanes, long count, float fill) {
    for (long lane = count; lane < SIMD_WIDTH; lane++) lanes[lane] = fill;
    return lanes;
}

// Scores, -inf where the mask allows nothing, become weights that sum to 1; zeros, where it allows no key at all.
static void softmax_row(float *scores, long count, int any) {
    vec highest = broadcast(-INFINITY), sum = {};
    for (long s = 0; s < count; s += SIMD_WIDTH)
        highest = max_vec(tail_of(load_partial(scores + s, count - s), count - s, -INFINITY), highest);
    float top = reduce_max(highest);
    for (long s = 0; s < count; s += SIMD_WIDTH) {
        vec lanes = load_partial(scores + s, count - s);
        vec weights = any ? tail_of(exp_vec(lanes - top), count - s, 0) : broadcast(0);
        store_partial(scores + s, weights, count - s);
        sum += weights;
    }
    float factor = any ? 1 / reduce_sum(sum) : 0;
    for (long s = 0; s < count; s += SIMD_WIDTH)
        store_partial(scores + s, load_partial(scores + s, count - s) * factor, count - s);
}

// query (rows, inner), key (rows, keys, inner), value (rows, keys, width), mask (rows, keys):
// weights (rows, keys) and context (rows, width).
void additive_attention(const float *query, const float *key, const float *value, const uint8_t *mask,
                        const float *score, float *weights, float *context, long rows, long keys, long inner,
                        long width, int threads) {
#pragma omp parallel for num_threads(threads)
    for (long row = 0; row < rows; row++) {
        const float *q = query + row * inner, *v = value + row * keys * width;
        float *w = weights + row * keys, *to = context + row * width;
        int any = 0;
        for (long s = 0; s < keys; s++) {
            const float *k = key + (row * keys + s) * inner;
            vec sum = {};
            any |= mask[row * keys + s];
            if (mask[row * keys + s])
                for (long i = 0; i < inner; i += SIMD_WIDTH)
                    sum += load_partial(score + i, inner - i) *
                           tanh_vec(load_partial(k + i, inner - i) + load_partial(q + i, inner - i));
            w[s] = mask[row * keys + s] ? reduce_sum(sum) : -INFINITY;
        }
        softmax_row(w, keys, any);
        for (long i = 0; i < width; i += SIMD_WIDTH) {
            vec sum = {};
            for (long s = 0; s < keys; s++) sum += w[s] * load_partial(v + s * width + i, width - i);
            store_partial(to + i, sum, width - i);
        }
    }
}

// Given the gradient by the context: by the query it is written; by the keys, and by `score` for each row, it is added.
void additive_attention_back(const float *query, const float *key, const float *value, const uint8_t *mask,
                             const float *score, const float *weights, const float *outer, float *by_query,
                             float *by_key, float *by_score, float *by_scores, long rows, long keys, long inner,
                             long width, int threads) {
#pragma omp parallel for num_threads(threads)
    for (long row = 0; row < rows; row++) {
        const float *q = query + row * inner, *v = value + row * keys * width, *o = outer + row * width;
        const float *w = weights + row * keys;
        float *to = by_query + row * inner, *at_score = by_score + row * inner, *at = by_scores + row * keys;
        float mean = 0;
        for (long s = 0; s < keys; s++) {
            at[s] = mask[row * keys + s] ? dot_product(o, v + s * width, width) : 0;
            mean += w[s] * at[s];
        }
        for (long i = 0; i < inner; i += SIMD_WIDTH) store_partial(to + i, broadcast(0), inner - i);
        for (long s = 0; s < keys; s++) {
            float factor = at[s] = w[s] * (at[s] - mean);
            if (!mask[row * keys + s]) continue;
            const float *k = key + (row * keys + s) * inner;
            float *at_key = by_key + (row * keys + s) * inner;
            for (long i = 0; i < inner; i += SIMD_WIDTH) {
                long left = inner - i;
                vec pair = tanh_vec(load_partial(k + i, left) + load_partial(q + i, left));
                vec slope = load_partial(score + i, left) * (1 - pair * pair) * factor;
                store_partial(at_key + i, load_partial(at_key + i, left) + slope, left);
                store_partial(to + i, load_partial(to + i, left) + slope, left);
                store_partial(at_score + i, load_partial(at_score + i, left) + pair * factor, left);
            }
        }
    }
}
