// This macro checks one NCCL call: an error names the call and quotes NCCL's message.
#pragma once

#include <nccl.h>

#include <string>

#include "framework/error.h"

// A non-blocking communicator answers ncclInProgress: see NcclStream::settle.
#define ANTICHAIN_NCCL(call)                                                                             \
  do {                                                                                                   \
    if (const ncclResult_t nccl_code = (call); nccl_code != ncclSuccess && nccl_code != ncclInProgress)  \
      throw ::antichain::Error(std::string(#call) + " failed: " + ncclGetErrorString(nccl_code) + ": " + \
                                   ncclGetLastError(nullptr),                                            \
                               "set NCCL_DEBUG=INFO to learn more, or use --transport mpi",              \
                               ::antichain::ExitCode::failure);                                          \
  } while (0)
