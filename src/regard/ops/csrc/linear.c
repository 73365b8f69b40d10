// x Wᵀ + b in float32 as a call of its own; linear.h has the body.
#include "linear.h"

// Returns OUT_OF_MEMORY on failure.
int linear(const float *x, const float *const *weights, const float *const *biases, float *out, long batch, long parts,
           long n, long k, int activation, int threads) {
    float *workspace = allocate(team_workspace(batch, k, threads) * sizeof(float));
    if (!workspace) return OUT_OF_MEMORY;
#pragma omp parallel num_threads(threads)
    linear_in_team(x, weights, biases, out, batch, parts, n, k, activation, workspace);
    free(workspace);
    return 0;
}

long linear_workspace(long batch, long k, int threads) { return team_workspace(batch, k, threads); }
