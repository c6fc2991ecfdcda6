"""Ways to reach an engine, all behind `app.engine_client.EngineClient`."""
