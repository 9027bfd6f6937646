// Checks that all engines that `antichain profile --tune` compares compute the same: each result is compared
// with that of the last engine, which is our own.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <string>

#include "framework/alternatives.h"
#include "framework/backend.h"
#include "framework/bf16.h"
#include "framework/error.h"
#include "framework/random.h"
#include "layers/conv2d.h"

namespace antichain::harness {

inline float number(const Tensor& host, int64_t i) {
  return host.dtype() == DType::bf16 ? float(host.data<Bf16>()[i]) : host.data<float>()[i];
}

inline Tensor operand_of(const TensorSpec& spec, uint64_t key, Context& context) {
  const Tensor host = Tensor::host(spec), device = context.backend().tensor(spec);
  for (int64_t i = 0; i < host.elements(); ++i) {
    const float value = 2 * Philox::uniform(Philox(key).words(uint64_t(i))[0]) - 1;
    if (spec.dtype == DType::bf16)
      host.data<Bf16>()[i] = Bf16(value);
    else
      host.data<float>()[i] = value;
  }
  context.backend().copy(context, host, device);
  return device;
}

// `share` says how far engines may be apart, as a share of the result's largest number; an engine that says
// that it rounds to bf16 may be off by that rounding, too. The first engine of a pass, which training takes,
// the second, which it takes without the first, and our own must be right; of all others it is only printed
// where they fail or differ. Returns how many engines ran.
inline int check_alternatives(const ListAlternatives& list, Context& context, const Conv2dOptions& options,
                              const Shape& image, Precision precision, float share) {
  int engines = 0;
  for (const PassAlternatives& pass : list(Conv2d(options), std::span(&image, 1), precision)) {
    const size_t result = pass.pass == "forward" ? 2 : pass.pass == "input gradient" ? 0 : 1;
    std::vector<Tensor> operands, results;
    for (size_t i = 0; i < pass.operands.size(); ++i)
      operands.push_back(operand_of(pass.operands[i], i, context));
    const auto blame = [&](size_t e, const std::string& why) {
      const std::string what = pass.pass + " by " + pass.all[e].engine + " " + why;
      if (e < 2 || e + 1 == pass.all.size())
        ADD_FAILURE() << what;
      else
        std::cout << "  which training does not take: " << what << std::endl;
    };
    for (const Alternative& one : pass.all) {
      const Tensor spoilt = Tensor::host(pass.operands[result]);
      std::fill_n(spoilt.raw(), spoilt.bytes(), std::byte(0x7F));  // NaN, of either type
      context.backend().copy(context, spoilt, operands[result]);
      results.push_back(spoilt);
      try {
        one.run(context, operands,
                one.workspace_bytes > 0 ? context.workspace(one.workspace_bytes) : nullptr);
        context.backend().copy(context, operands[result], results.back());
        ++engines;
      } catch (const Error& error) {
        blame(results.size() - 1, std::string("fails: ") + error.what());
      }
    }
    const Tensor& ours = results.back();
    float largest = 0;
    for (int64_t i = 0; i < ours.elements(); ++i) largest = std::max(largest, std::abs(number(ours, i)));
    EXPECT_GT(largest, 0);
    for (size_t e = 0; e < results.size(); ++e) {
      float off = 0;
      for (int64_t i = 0; i < ours.elements(); ++i) {
        const float here = std::abs(number(results[e], i) - number(ours, i));
        off = here <= off ? off : here;  // NaN stays
      }
      const float rounded = pass.all[e].engine.find("rounded to bf16") == std::string::npos ? 0 : 0x1p-8f;
      if (!(off <= (share + rounded) * largest))
        blame(e,
              "is off by " + std::to_string(off) + " where the largest number is " + std::to_string(largest));
    }
  }
  return engines;
}

}  // namespace antichain::harness
