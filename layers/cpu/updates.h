// Lists the optimisers that the "cpu" backend carries out: each file defines the pass over one parameter.
#pragma once

#include "framework/optimiser.h"

namespace antichain::cpu {

void adamw(Context&, const Optimiser&, const Rate&, const Trained&);
void ema(Context&, const Optimiser&, const Rate&, const Trained&);
void muon(Context&, const Optimiser&, const Rate&, const Trained&);
void sgd(Context&, const Optimiser&, const Rate&, const Trained&);

}  // namespace antichain::cpu
