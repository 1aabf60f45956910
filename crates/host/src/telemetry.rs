//! Starts the export to the OpenTelemetry collector that the configuration names.

use std::sync::Arc;

use toolgate_config::Config;
use toolgate_gate::{Finished, Observer};
use toolgate_telemetry::{CallerNames, Export, Headers, Telemetry, TelemetrySettings};

use crate::{HostLayers, OpenError, open_egress};

pub fn start_telemetry(config: &Config) -> Result<Option<Arc<Telemetry>>, OpenError> {
    let Some(otlp) = &config.metrics.otlp else { return Ok(None) };
    let broken = |problem: String| OpenError { part: "metrics.otlp", problem };
    let headers = match &otlp.headers_env {
        None => String::new(),
        Some(name) => std::env::var(name)
            .map_err(|_| broken(format!("the environment variable `{name}` is not set")))?,
    };
    let settings = TelemetrySettings {
        endpoint: otlp.endpoint.clone(),
        headers: Headers::parse(&headers).map_err(|error| broken(error.to_string()))?,
        interval: otlp.interval,
        traces: if otlp.traces { Export::On } else { Export::Off },
        metrics: if otlp.metrics { Export::On } else { Export::Off },
        callers: CallerNames::Hashed,
        isolation: HostLayers::probe().gauges(),
    };
    let egress = open_egress(&config.state).map_err(|error| broken(error.to_string()))?;
    let telemetry = Telemetry::start(&settings, &egress).map_err(|error| broken(error.to_string()))?;
    Ok(Some(Arc::new(telemetry)))
}

/// Several observers as one.
pub struct Observers(Vec<Arc<dyn Observer>>);

impl Observers {
    /// `None`: there are no observers.
    pub fn of(
        own: Option<Arc<dyn Observer>>,
        telemetry: Option<Arc<Telemetry>>,
    ) -> Option<Arc<dyn Observer>> {
        match (own, telemetry) {
            (None, None) => None,
            (Some(own), None) => Some(own),
            (None, Some(telemetry)) => Some(telemetry),
            // Telemetry first: a panic in the program's observer must not prevent counting.
            (Some(own), Some(telemetry)) => Some(Arc::new(Self(vec![telemetry, own]))),
        }
    }
}

impl Observer for Observers {
    fn finished(&self, call: &Finished<'_>) {
        for observer in &self.0 {
            observer.finished(call);
        }
    }
}
