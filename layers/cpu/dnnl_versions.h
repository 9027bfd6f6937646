// What oneDNN 2 and 3 do differently; no other file asks which of them it is. In oneDNN 2 an operation is
// described first and its pass then, by a description of a description; oneDNN 3 takes both at once.
#pragma once

#include "layers/cpu/dnnl.h"

namespace antichain::cpu {

// Describes a pass by what oneDNN's documentation lists between the engine and the attributes. A bias that is
// Desc() is none.
template <class Pass, class... Arguments>
typename Pass::primitive_desc pass_of(const dnnl::primitive_attr& attributes, const Arguments&... arguments) {
#if DNNL_VERSION_MAJOR < 3
  return {typename Pass::desc(arguments...), attributes, engine()};
#else
  return {engine(), arguments..., attributes};
#endif
}

// Describes a backward pass, which oneDNN wants to know the forward pass of.
template <class Pass, class Forward, class... Arguments>
typename Pass::primitive_desc backward_pass_of(const Forward& forward, const Arguments&... arguments) {
#if DNNL_VERSION_MAJOR < 3
  return {typename Pass::desc(arguments...), user_scratchpad(), engine(), forward};
#else
  return {engine(), arguments..., forward, user_scratchpad()};
#endif
}

}  // namespace antichain::cpu
