// One step of a GRU beside its matrix product, forward and backward: what ops/gru_scan.py says in torch.
#include "activation.h"

// reset, keep = σ(given + projected), new = tanh(given + reset · projected), next = new + keep (state - new).
// given (rows, 3 width); projected the same, with rows `stride` apart; kept (rows, 4 width): reset, keep, new, and the
// projected part of new.
void gru_step(const float *given, const float *projected, long stride, const float *state, float *kept, float *next,
              long rows, long width, int threads) {
#pragma omp parallel for num_threads(threads)
    for (long row = 0; row < rows; row++) {
        const float *g = given + row * 3 * width, *p = projected + row * stride, *s = state + row * width;
        float *k = kept + row * 4 * width, *to = next + row * width;
        for (long i = 0; i < width; i += SIMD_WIDTH) {
            long left = width - i;
            vec reset = sigmoid(load_partial(g + i, left) + load_partial(p + i, left));
            vec keep = sigmoid(load_partial(g + width + i, left) + load_partial(p + width + i, left));
            vec inner = load_partial(p + 2 * width + i, left);
            vec new = tanh_vec(load_partial(g + 2 * width + i, left) + reset * inner);
            store_partial(k + i, reset, left);
            store_partial(k + width + i, keep, left);
            store_partial(k + 2 * width + i, new, left);
            store_partial(k + 3 * width + i, inner, left);
            store_partial(to + i, new + keep * (load_partial(s + i, left) - new), left);
        }
    }
}

// The gradients of `given` and `projected`, and the part of the state's that comes through `keep`: stays.
void gru_step_back(const float *outer, const float *state, const float *kept, float *given, float *projected,
                   long stride, float *stays, long rows, long width, int threads) {
#pragma omp parallel for num_threads(threads)
    for (long row = 0; row < rows; row++) {
        const float *o = outer + row * width, *s = state + row * width, *k = kept + row * 4 * width;
        float *g = given + row * 3 * width, *p = projected + row * stride, *to = stays + row * width;
        for (long i = 0; i < width; i += SIMD_WIDTH) {
            long left = width - i;
            vec gradient = load_partial(o + i, left), reset = load_partial(k + i, left);
            vec keep = load_partial(k + width + i, left), new = load_partial(k + 2 * width + i, left);
            vec by_keep = gradient * keep, at_new = (gradient - by_keep) * (1 - new * new);
            vec at_reset = at_new * load_partial(k + 3 * width + i, left) * (reset - reset * reset);
            vec at_keep = (by_keep - by_keep * keep) * (load_partial(s + i, left) - new);
            store_partial(g + i, at_reset, left);
            store_partial(g + width + i, at_keep, left);
            store_partial(g + 2 * width + i, at_new, left);
            store_partial(p + i, at_reset, left);
            store_partial(p + width + i, at_keep, left);
            store_partial(p + 2 * width + i, at_new * reset, left);
            store_partial(to + i, by_keep, left);
        }
    }
}
