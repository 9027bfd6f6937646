// Lists the optimisers that the "cpu" backend carries out: each file defines the pass over one parameter.
#pragma once

#include "framework/optimiser.h"

namespace antichain::cpu {

// Below it a team of threads costs more than it gives. Loops say `if (parallel : …)`, because a plain `if`
// would take the vectors from small parameters, too.
constexpr int64_t parallel_elements = 1 << 16;

void adamw(Context&, const Optimiser&, const Rate&, const Trained&);
void ema(Context&, const Optimiser&, const Rate&, const Trained&);
void muon(Context&, const Optimiser&, const Rate&, const Trained&);
void sgd(Context&, const Optimiser&, const Rate&, const Trained&);

// These predict (framework/prediction.h).
void adamw_ahead(Context&, const Optimiser&, const Rate&, const Trained&);
void muon_ahead(Context&, const Optimiser&, const Rate&, const Trained&);
void sgd_ahead(Context&, const Optimiser&, const Rate&, const Trained&);

}  // namespace antichain::cpu
