#include <rondo/errors.hpp>

namespace rondo {

const char RONDO_LAYOUT = 0;

// Not inline, so that the library and all code that uses it share one type information for each
// error.
Error::~Error() = default;
UsageError::~UsageError() = default;
MismatchError::~MismatchError() = default;
TimeoutError::~TimeoutError() = default;
PeerError::~PeerError() = default;
TransportError::~TransportError() = default;
CudaError::~CudaError() = default;

}  // namespace rondo
