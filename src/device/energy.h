// What work costs in joules: a model, which a sensor corrects where there is one.
#pragma once

#include <string>

#include "device/least_squares.h"
#include "device/roofline.h"

namespace limber {

// E = M_cpu·P_cpu·e / f_cpu + M_gpu·P_gpu / f_gpu + M_mem·P_mem·(1 - e) / f_mem
//
// M is work, f how much of it is done in a second, P the watts drawn while it is, and e the share of accesses
// that find their data in a cache. M_cpu and M_gpu are floating-point operations here and M_mem bytes, so
// that f is what a roofline measures. A part whose f is 0 is not there.
struct EnergyModel {
  double cpu_watts = 0, cpu_flops = 0;
  double gpu_watts = 0, gpu_flops = 0;
  double memory_watts = 0, memory_bytes = 0;
  double hit_rate = 0;    // e
  double idle_watts = 0;  // drawn all the time; the formula knows only work

  double joules(double cpu_work, double gpu_work, double memory_work) const;  // by the formula: without idle
  std::string problem() const;
};

// Watts of an ordinary machine with that many cores: guesses, right within a factor of a few.
EnergyModel guess_energy_model(int cores, const Roofline& roofline);

// e, from what an access takes when it hits, when it misses, and on average: mean = e·hit + (1 - e)·miss.
// (The paper's 1 - (t0 - mean) / t0 is mean / t0, which is highest where nothing hits.)
double cache_hit_rate(double hit_s, double miss_s, double mean_s);

// Use from one thread.
class EnergyMeter {
 public:
  explicit EnergyMeter(const EnergyModel& model);  // REQUIRES: model.problem() is empty

  // Of work on the CPU that took so long; 0 or more. What is not a number counts as 0.
  double joules(double work_flops, double work_bytes, double seconds) const;
  // What a sensor counted for such work (DeviceSample::energy_j, before and after). It counts what others
  // did, too: observe while the machine is otherwise idle.
  void observe(double work_flops, double work_bytes, double seconds, double measured_joules);
  bool estimated() const;  // true: guesses only, no sensor has corrected them

 private:
  struct Parts {
    double work, idle;
  };
  Parts parts(double work_flops, double work_bytes, double seconds) const;

  EnergyModel model_;
  RecursiveLeastSquares factors_;  // of the formula's joules and of the idle ones; 1 and 1 at first
  int observed_ = 0;
};

}  // namespace limber
