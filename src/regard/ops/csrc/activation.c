// What is done to each number by itself, memory passed through once: activations and their gradients; dropout.
#include "activation.h"

void activation_forward(const float *x, float *out, long count, int which, int threads) {
    long whole = count / SIMD_WIDTH * SIMD_WIDTH;
    vec slope;
#pragma omp parallel for num_threads(threads) private(slope)
    for (long i = 0; i < whole; i += SIMD_WIDTH) store(out + i, passing(load(x + i), which, &slope));
    store_partial(out + whole, passing(load_partial(x + whole, count - whole), which, &slope), count - whole);
}

// out = slope at x · outer: the gradient by x of what has the gradient `outer` by the activation.
void activation_backward(const float *x, const float *outer, float *out, long count, int which, int threads) {
    long whole = count / SIMD_WIDTH * SIMD_WIDTH, rest = count - whole;
    vec slope;
#pragma omp parallel for num_threads(threads) private(slope)
    for (long i = 0; i < whole; i += SIMD_WIDTH) {
        passing(load(x + i), which, &slope);
        store(out + i, slope * load(outer + i));
    }
    passing(load_partial(x + whole, rest), which, &slope);
    store_partial(out + whole, slope * load_partial(outer + whole, rest), rest);
}
