// What this machine can do at best, measured: the two ceilings that a profile is compared with.
#pragma once

namespace limber {

struct Roofline {
  int threads = 1;
  double flops = 0;            // f32 fused multiply-adds from registers, operations per second
  double copy_bytes = 0;       // bytes per second read and written by a copy larger than private caches
  double triad_bytes = 0;      // the same for a = b + s * c
  double measure_seconds = 0;  // how long the measurement took

  double bytes() const { return copy_bytes > triad_bytes ? copy_bytes : triad_bytes; }
  // Time that work of this size needs at least. Data that stays in a cache can beat it.
  double seconds(double work_flops, double work_bytes) const;
};

// Takes about 0.2 s; other load on the machine lowers the figures.
Roofline measure_roofline(int threads);

}  // namespace limber
