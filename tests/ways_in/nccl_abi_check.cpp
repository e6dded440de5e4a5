// The values that Rondo's libnccl takes are those of NCCL's own header.
#include <nccl.h>

#include <cstddef>

namespace rondo_has {
#include "adapters/nccl/interface.hpp"
}

namespace {

template <class Theirs, class Ours>
constexpr bool equal(Theirs theirs, Ours ours) {
  return static_cast<int>(theirs) == static_cast<int>(ours);
}

static_assert(sizeof(ncclUniqueId) == sizeof(rondo_has::ncclUniqueId));
static_assert(equal(ncclSuccess, rondo_has::ncclSuccess));
static_assert(equal(ncclUnhandledCudaError, rondo_has::ncclUnhandledCudaError));
static_assert(equal(ncclSystemError, rondo_has::ncclSystemError));
static_assert(equal(ncclInternalError, rondo_has::ncclInternalError));
static_assert(equal(ncclInvalidArgument, rondo_has::ncclInvalidArgument));
static_assert(equal(ncclInvalidUsage, rondo_has::ncclInvalidUsage));
static_assert(equal(ncclRemoteError, rondo_has::ncclRemoteError));
static_assert(equal(ncclInProgress, rondo_has::ncclInProgress));
static_assert(equal(ncclInt8, rondo_has::ncclInt8));
static_assert(equal(ncclUint8, rondo_has::ncclUint8));
static_assert(equal(ncclInt32, rondo_has::ncclInt32));
static_assert(equal(ncclUint32, rondo_has::ncclUint32));
static_assert(equal(ncclInt64, rondo_has::ncclInt64));
static_assert(equal(ncclUint64, rondo_has::ncclUint64));
static_assert(equal(ncclFloat16, rondo_has::ncclFloat16));
static_assert(equal(ncclFloat32, rondo_has::ncclFloat32));
static_assert(equal(ncclFloat64, rondo_has::ncclFloat64));
static_assert(equal(ncclBfloat16, rondo_has::ncclBfloat16));
static_assert(equal(ncclSum, rondo_has::ncclSum));
static_assert(equal(ncclProd, rondo_has::ncclProd));
static_assert(equal(ncclMax, rondo_has::ncclMax));
static_assert(equal(ncclMin, rondo_has::ncclMin));
static_assert(equal(ncclAvg, rondo_has::ncclAvg));
static_assert(equal(NCCL_SPLIT_NOCOLOR, rondo_has::kNcclSplitNoColor));
#if NCCL_VERSION_CODE >= 22400
static_assert(equal(ncclFloat8e4m3, rondo_has::ncclFloat8e4m3));
static_assert(equal(ncclFloat8e5m2, rondo_has::ncclFloat8e5m2));
#endif

}  // namespace
