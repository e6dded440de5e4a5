#include <rondo/errors.hpp>

namespace rondo {

// Out of line, so that every program shares one type information for each error.
Error::~Error() = default;
UsageError::~UsageError() = default;
MismatchError::~MismatchError() = default;
TimeoutError::~TimeoutError() = default;
PeerError::~PeerError() = default;
TransportError::~TransportError() = default;
CudaError::~CudaError() = default;

}  // namespace rondo
