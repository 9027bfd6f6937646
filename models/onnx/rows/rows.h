// These are the rows of the table of operators. Each makes our nodes from one ONNX node, by the functions of
// a Translation. They throw Unsupported for options that our operators do not have.
#pragma once

#include "layers/activate.h"
#include "models/onnx/translation.h"

namespace antichain::onnx::row {

// convolutions.cpp
void conv(Translation&);
void conv_transpose(Translation&);

// matrices.cpp
void gemm(Translation&);
void matmul(Translation&);

// norms.cpp
void batch_norm(Translation&);
void layer_norm(Translation&);
void group_norm(Translation&);
void instance_norm(Translation&);

// functions.cpp
void activate(Translation&, ActivationFunction);
void cast(Translation&);
void clip(Translation&);
void dropout(Translation&);
void gelu(Translation&);
void hardsigmoid(Translation&);
void identity(Translation&);
void relu(Translation&);
void softmax(Translation&);

// pools.cpp
void average_pool(Translation&);
void global_average_pool(Translation&);
void max_pool(Translation&);
void reduce_mean(Translation&);

// arithmetic.cpp
void add(Translation&);
void divide(Translation&);
void multiply(Translation&);
void subtract(Translation&);

// shapes.cpp
void flatten(Translation&);
void reshape(Translation&);
void shape(Translation&);
void squeeze(Translation&);
void transpose(Translation&);
void unsqueeze(Translation&);

// parts.cpp
void concat(Translation&);
void gather(Translation&);
void slice(Translation&);
void split(Translation&);

// images.cpp
void pad(Translation&);
void resize(Translation&);

}  // namespace antichain::onnx::row
