// Code that host and device compile alike.
#pragma once

#ifdef __CUDACC__
#define RONDO_HOST_DEVICE __host__ __device__
#else
#define RONDO_HOST_DEVICE
#endif
