// Several models behind the service: a table of them, and the thread that senses, forecasts and lets each
// decide.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

#include "device/forecast.h"
#include "device/sensor.h"
#include "serve/served_model.h"
#include "serve/service.h"

namespace limber {

// Where models come from: whoever starts a server knows folders and files. Called from any thread.
class ModelRepository {
 public:
  virtual ~ModelRepository() = default;
  // Names that may be loaded, sorted.
  virtual std::vector<std::string> names() const = 0;
  // Reads the model; kNotFound when there is none of this name.
  virtual Result<ServedSource> open(const std::string& name) const = 0;
  virtual std::vector<std::shared_ptr<Backend>> backends() const = 0;
  // How a model is served that is not as all others.
  virtual ServeOptions serving(const std::string& /*name*/, const ServeOptions& usual) const { return usual; }
};

struct ModelServerOptions {
  ServeOptions model;    // of each
  double tick_s = 0.05;  // between two decisions: a tenth of what the meter remembers
  double idle_tick_s =
      0.5;  // the same when no request came for a while: nothing is to be decided, nothing spins
  double forecast_s = 0.5;  // how far ahead load is forecast: about what it takes to notice and to switch
  std::string version;      // of the program
};

class ModelServer final : public InferenceService {
 public:
  // Starts with no model; load() adds them. `repository` outlives the server.
  ModelServer(const ModelRepository& repository, std::unique_ptr<DeviceSensor> sensor,
              const ModelServerOptions& options);
  ~ModelServer() override;

  ServerMetadata server() const override;
  bool live() const override { return true; }
  bool ready() const override;
  ServeStatus model_ready(std::string_view model, std::string_view version) const override;
  ServeStatus metadata(std::string_view model, std::string_view version, ModelMetadata& to) const override;
  void infer(InferRequest request, InferDone done) override;
  std::vector<RepositoryEntry> index(bool ready_only) const override;
  ServeStatus load(const std::string& model) override;
  ServeStatus unload(const std::string& model) override;
  ServeStatus force(const std::string& model, const std::string& variant) override;
  std::string metrics() const override;
  std::string status_json() const override;

  // These will be loaded: until each was, or could not be, the server is not ready.
  void announce(const std::vector<std::string>& models);
  // As load(), with the reason as the program knows it.
  Status open(const std::string& model);
  // New requests are refused; what waits is answered. Then readiness is over for good.
  void drain();
  // Those that are loaded, by name.
  std::vector<std::pair<std::string, std::shared_ptr<ServedModel>>> models() const;
  // What each version of a model did since the server began, those that are gone included.
  struct Served {
    std::string model, version;
    ServeStats::Totals totals;
  };
  std::vector<Served> served() const;
  // Called after each change of a variant, from the thread that decides; set before load().
  void on_switch(std::function<void(const std::string& model, const SwitchEvent&)> call) {
    on_switch_ = std::move(call);
  }

  // What the machine was like at the last tick.
  struct Sensed {
    DeviceSample sample;
    double load = 0, forecast = 0;
    double power_w = 0;  // since the sample before; 0: nobody tells
  };
  Sensed sensed() const;

 private:
  struct State {
    std::shared_ptr<ServedModel> model;  // null: not loaded
    bool loading = false;
    bool announced = false;  // and not tried yet
    std::string reason;      // why it is not there
  };
  std::shared_ptr<ServedModel> find(std::string_view model, std::string_view version,
                                    ServeStatus& status) const;
  void remember(const std::string& name, const ServedModel& model);
  void control();
  void sense(bool resting);
  void tell_switches(const std::string& name, const ServedModel& model);

  const ModelRepository& repository_;
  const ModelServerOptions options_;
  const double started_;

  mutable std::shared_mutex mutex_;  // of the models
  std::map<std::string, State, std::less<>> models_;
  // Of models that are gone. Some of their requests may be on their way still, so what counts them is kept
  // until nobody else holds it; then the sums suffice, however often a model is loaded.
  std::map<std::pair<std::string, std::string>, ServeStats::Totals> past_;
  std::vector<std::tuple<std::string, std::string, std::shared_ptr<const ServeStats>>> leaving_;
  bool draining_ = false;
  std::mutex loading_;  // one load at a time: two would slow each other and all who are served

  mutable std::mutex sensed_mutex_;
  std::unique_ptr<DeviceSensor> sensor_;
  LoadForecast forecast_;
  Sensed sensed_;
  std::function<void(const std::string&, const SwitchEvent&)> on_switch_;
  std::map<std::string, double> told_;  // model -> time of the last switch that was told; of control() only

  std::mutex stop_mutex_;
  std::condition_variable stopped_;
  bool stop_ = false;
  std::thread control_;
};

}  // namespace limber
