// All types of the public interface that programs and the library share in memory, as arguments of
// one function: from the debugging information of this file tools/abi.sh learns how they are laid
// out.
#include <rondo/calls.h>
#include <rondo/communicator.h>
#include <rondo/gradient_reducer.h>
#include <rondo/memory.h>
#include <rondo/cuda.hpp>
#include <rondo/cuda_gradient_reducer.hpp>
#include <rondo/rondo.hpp>

extern "C" __attribute__((visibility("default"))) void types_of_rondo(
    rondo::Call&, rondo::CallOptions&, rondo::Communicator&, rondo::CommunicatorOptions&,
    rondo::Work&, rondo::PersistentCall&, rondo::UserReduction&, rondo::Calls&,
    rondo::ExchangeCalls&, rondo::UserReductionCalls&, rondo::Topology&, rondo::Range&,
    rondo::GradientReducer&, rondo::GradientOptions&, rondo::GradientStatistics&, rondo::Parameter&,
    rondo::RegisteredMemory<float>&, rondo::Communicator::Part&, rondo::DataType, rondo::ReduceOp,
    rondo::Collective, rondo::Algorithm, rondo::Carrier, rondo::CarrierChoice, rondo::LogLevel,
    rondo::cuda::Communicator&, rondo::cuda::GradientReducer&, rondo_call&, rondo_options&,
    rondo_call_options&, rondo_reduction&, rondo_place&, rondo_edge&, rondo_machine&,
    rondo_parameter&, rondo_gradient_options&, rondo_gradient_statistics&, rondo_bucket_statistics&,
    rondo_status, rondo_type, rondo_op, rondo_collective, rondo_algorithm, rondo_carrier) {}
