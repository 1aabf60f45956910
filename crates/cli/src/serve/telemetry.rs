//! Who is told of calls from afar? The collector that the configuration names, if it names one.

use std::sync::Arc;

use toolgate::{Config, open_egress};
use toolgate_telemetry::{Callers, Export, Headers, Settings, Telemetry};

use crate::{Failure, isolation::HostLayers, terminal::visible};

pub fn start(config: &Config, layers: &HostLayers) -> Result<Option<Arc<Telemetry>>, Failure> {
    let Some(otlp) = &config.metrics.otlp else { return Ok(None) };
    let told = |problem: String| Failure::new(format!("metrics.otlp: {}", visible(&problem)));
    let headers = match &otlp.headers_env {
        None => String::new(),
        Some(name) => {
            std::env::var(name).map_err(|_| told(format!("the environment variable `{name}` is not set")))?
        }
    };
    let settings = Settings {
        endpoint: otlp.endpoint.clone(),
        headers: Headers::parse(&headers).map_err(|error| told(error.to_string()))?,
        interval: otlp.interval,
        traces: if otlp.traces { Export::On } else { Export::Off },
        metrics: if otlp.metrics { Export::On } else { Export::Off },
        callers: Callers::Hashed,
        isolation: layers.gauges(),
    };
    let egress = open_egress(&config.state).map_err(|error| told(error.to_string()))?;
    let telemetry = Telemetry::start(&settings, &egress).map_err(|error| told(error.to_string()))?;
    Ok(Some(Arc::new(telemetry)))
}
