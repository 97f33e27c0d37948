//! What goes wrong in loops of this kind, as inputs; each test is named by the number of the case that it shows.

mod bill;
mod commits;
mod context;
mod lost_work;
mod measured;
mod state;
mod steps;
mod stuck;
mod user_settings;
mod weak;
