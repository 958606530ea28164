mod acquiring;
mod ending;
mod paused;
mod renewing;
mod scene;
