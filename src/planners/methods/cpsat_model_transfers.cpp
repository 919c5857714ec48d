#include <algorithm>

#include "planners/methods/cpsat_model_state.h"

namespace placewright {
namespace {

using solvers::CpExpression;
using solvers::CpInterval;
using solvers::CpLiteral;
using solvers::CpVariable;
using Units = std::int64_t;

}  // namespace

// The literals that say which way a tensor goes, and what that adds to the lengths of ops.
void ScheduleModel::State::add_routes(TensorId tensor) {
  const std::vector<OpId> readers = readers_of(tensor);
  if (readers.empty()) return;
  const bool alone = !congestion_ && !overheads_;
  if (alone) {
    for (const OpId reader : readers) {
      if (const auto time = time_anywhere(tensor, reader)) {
        add_paid_edge(tensor, reader, *time);
      } else {
        add_link_edge(tensor, reader);
      }
    }
  } else if (problem_.interconnect() == InterconnectKind::host) {
    add_host(tensor, readers);
  } else if (readers.size() == 1) {
    add_link_edge(tensor, readers.front());
  } else {
    add_links(tensor, readers);
  }
  if (!overheads_) return;
  add_send_overheads(tensor, readers);
  for (const DeviceId device : problem_.devices()) add_receive_overhead(tensor, readers, device);
}

void ScheduleModel::State::pay(OpId op, const Overhead& overhead) {
  if (is_false(overhead.paid)) return;
  add_term(ops_[op].length, overhead.paid, overhead.time);
  ops_[op].overheads.push_back(overhead);
}

// The producer pays for each way that the tensor leaves its space, and once more if anybody beside
// it in the space reads the tensor.
void ScheduleModel::State::add_send_overheads(TensorId tensor, std::span<const OpId> readers) {
  const OpId producer = problem_.producer(tensor);
  if (!inside(producer)) return;
  for (const Choice& from : choices(producer)) {
    const Units send = grid_.units(problem_.send_overhead(tensor, from.device));
    if (send == 0) continue;
    const SpaceId space = problem_.space(from.device);
    const bool alone_there = in(producer, space).code() == from.here.code();
    for (const Route& route : routes_[tensor]) {
      if (route.from != space) continue;
      pay(producer, {alone_there ? route.taken : both(from.here, route.taken), from.device, send});
    }
    std::vector<CpLiteral> handed_over;
    for (const OpId reader : readers) {
      const std::vector<CpLiteral> there = beside(reader, from.device);
      handed_over.insert(handed_over.end(), there.begin(), there.end());
    }
    pay(producer, {both(from.here, any(handed_over)), from.device, send});
  }
}

// Of the readers on the device the first in topological order pays, whatever their order in the
// file.
void ScheduleModel::State::add_receive_overhead(TensorId tensor, std::vector<OpId> readers,
                                                DeviceId device) {
  const Units receive = grid_.units(problem_.receive_overhead(tensor, device));
  if (receive == 0) return;
  std::sort(readers.begin(), readers.end(), [&](OpId a, OpId b) {
    return problem_.topological_rank(a) < problem_.topological_rank(b);
  });
  const OpId producer = problem_.producer(tensor);
  const bool nothing_enters =
      problem_.interconnect() == InterconnectKind::host && problem_.on_host(device);
  CpLiteral nobody = nothing_enters ? any(beside(producer, device)) : !on(producer, device);
  for (const OpId reader : readers) {
    const CpLiteral pays = both(nobody, on(reader, device));
    nobody = both(nobody, !on(reader, device));
    if (inside(reader)) pay(reader, {pays, device, receive});
  }
}

// One reader: which pair of spaces. The rows "one pair for each space" are tight in the linear
// relaxation.
void ScheduleModel::State::add_link_edge(TensorId tensor, OpId reader) {
  const OpId producer = problem_.producer(tensor);
  const auto from = places(producer);
  const auto to = places(reader);
  auto [known, fresh] = pairs_.try_emplace({problem_.group(producer), problem_.group(reader)});
  std::vector<CpLiteral>& pairs = known->second;
  if (fresh) {
    const bool given = from.size() == 1 || to.size() == 1;
    for (const Place& a : from) {
      for (const Place& b : to) {
        if (given) {
          pairs.push_back(from.size() == 1 ? b.here : a.here);
          continue;
        }
        const CpVariable pair = model_.add_bool();
        derived_.emplace_back(pair, [a = a.here, b = b.here](const Values& values) {
          return value(values, a) != 0 && value(values, b) != 0;
        });
        pairs.emplace_back(pair);
      }
    }
    for (std::size_t a = 0; !given && a < from.size(); ++a) {
      std::vector<CpLiteral> row{!from[a].here};
      for (std::size_t b = 0; b < to.size(); ++b) row.push_back(pairs[a * to.size() + b]);
      model_.add_exactly_one(row);
    }
    for (std::size_t b = 0; !given && b < to.size(); ++b) {
      std::vector<CpLiteral> column{!to[b].here};
      for (std::size_t a = 0; a < from.size(); ++a) column.push_back(pairs[a * to.size() + b]);
      model_.add_exactly_one(column);
    }
  }
  for (std::size_t a = 0; a < from.size(); ++a) {
    for (std::size_t b = 0; b < to.size(); ++b) {
      if (from[a].space == to[b].space) continue;
      const CpLiteral pair = pairs[a * to.size() + b];
      if (!reachable(tensor, from[a].space, to[b].space)) {
        add_clause({!pair});
        continue;
      }
      add_direct(tensor, from[a].space, to[b].space, pair);
    }
  }
}

// What a transfer takes between any two spaces where producer and reader may be; nullopt: not
// always the same, or one of them has no choice.
std::optional<Units> ScheduleModel::State::time_anywhere(TensorId tensor, OpId reader) const {
  const OpId producer = problem_.producer(tensor);
  if (places(producer).size() < 2 || places(reader).size() < 2) return std::nullopt;
  std::optional<Units> time;
  for (const Place& from : places(producer)) {
    for (const Place& to : places(reader)) {
      if (from.space == to.space) continue;
      if (!reachable(tensor, from.space, to.space)) return std::nullopt;
      const Units here = move(tensor, member_[from.space], member_[to.space]);
      if (time.value_or(here) != here) return std::nullopt;
      time = here;
    }
  }
  return time;
}

// One literal for each pair of groups: whether they share a space. The transfer is paid or not.
CpLiteral ScheduleModel::State::share_a_space(OpId a, OpId b) {
  const auto [known, fresh] = same_.try_emplace({problem_.group(a), problem_.group(b)}, yes_);
  if (!fresh) return known->second;
  const CpVariable same = model_.add_bool();
  std::vector<std::pair<CpLiteral, CpLiteral>> pairs;
  for (const SpaceId space : problem_.spaces()) {
    const CpLiteral first = in(a, space);
    const CpLiteral second = in(b, space);
    if (is_false(first) && is_false(second)) continue;
    add_clause({!CpLiteral(same), !first, second});
    add_clause({!CpLiteral(same), first, !second});
    add_clause({CpLiteral(same), !first, !second});
    pairs.emplace_back(first, second);
  }
  derived_.emplace_back(same, [pairs](const Values& values) {
    return std::any_of(pairs.begin(), pairs.end(), [&](const auto& pair) {
      return value(values, pair.first) != 0 && value(values, pair.second) != 0;
    });
  });
  return known->second = same;
}

void ScheduleModel::State::add_paid_edge(TensorId tensor, OpId reader, Units time) {
  const CpLiteral same = share_a_space(problem_.producer(tensor), reader);
  routes_[tensor].push_back({tensor, Leg::direct, SpaceId{}, SpaceId{}, !same, time});
}

void ScheduleModel::State::add_direct(TensorId tensor, SpaceId from, SpaceId to, CpLiteral taken) {
  routes_[tensor].push_back(
      {tensor, Leg::direct, from, to, taken, move(tensor, member_[from], member_[to])});
}

// Several readers: the tensor goes once to each space that reads it.
void ScheduleModel::State::add_links(TensorId tensor, std::span<const OpId> readers) {
  const OpId producer = problem_.producer(tensor);
  for (const SpaceId to : problem_.spaces()) {
    std::vector<CpLiteral> here;
    for (const OpId reader : readers) here.push_back(in(reader, to));
    const CpLiteral read_here = any(here);
    if (is_false(read_here)) continue;
    for (const Place& from : places(producer)) {
      if (from.space == to) continue;
      if (!reachable(tensor, from.space, to)) {
        add_clause({!from.here, !read_here});
        continue;
      }
      const CpLiteral taken = both(from.here, read_here);
      if (is_false(taken)) continue;
      add_direct(tensor, from.space, to, taken);
    }
  }
}

void ScheduleModel::State::add_host(TensorId tensor, std::span<const OpId> readers) {
  const OpId producer = problem_.producer(tensor);
  const Units once = grid_.units(problem_.host_time(tensor));
  for (const Place& from : places(producer)) {
    if (on_host(from.space)) continue;
    std::vector<CpLiteral> elsewhere;
    for (const OpId reader : readers) elsewhere.push_back(!in(reader, from.space));
    const CpLiteral taken = both(from.here, any(elsewhere));
    if (is_false(taken)) continue;
    routes_[tensor].push_back({tensor, Leg::out, from.space, SpaceId{}, taken, once});
  }
  for (const SpaceId to : problem_.spaces()) {
    if (on_host(to)) continue;
    std::vector<CpLiteral> here;
    for (const OpId reader : readers) here.push_back(in(reader, to));
    const CpLiteral taken = both(!in(producer, to), any(here));
    if (is_false(taken)) continue;
    routes_[tensor].push_back({tensor, Leg::in, SpaceId{}, to, taken, once});
  }
}

void ScheduleModel::State::add_movements() {
  for (const TensorId tensor : tensors_) {
    const OpId producer = problem_.producer(tensor);
    const std::vector<OpId> readers = readers_of(tensor);
    // Routes of a single reader say this already.
    const bool said = readers.size() == 1 || (!congestion_ && !overheads_);
    for (const OpId reader : problem_.consumers(tensor)) {
      if (!inside(reader) && !inside(producer)) continue;
      if (!said || problem_.group(reader) == problem_.group(producer)) {
        reach(reader, end_of(producer));
      }
    }
    if (readers.empty()) continue;
    if (!congestion_ && !overheads_) {
      // Each reader has its own routes, in the order in which they were added.
      std::size_t next = 0;
      for (const OpId reader : readers) {
        CpExpression arrival = end_of(producer);
        if (time_anywhere(tensor, reader)) {
          const Route& route = routes_[tensor][next++];
          add_term(arrival, route.taken, route.length);
          reach(reader, arrival);
          continue;
        }
        for (const Place& from : places(producer)) {
          for (const Place& to : places(reader)) {
            if (from.space == to.space || !reachable(tensor, from.space, to.space)) continue;
            const Route& route = routes_[tensor][next++];
            add_term(arrival, route.taken, route.length);
          }
        }
        reach(reader, arrival);
      }
    } else if (problem_.interconnect() == InterconnectKind::host) {
      move_by_host(readers, tensor);
    } else {
      move_by_links(readers, tensor);
    }
  }
}

void ScheduleModel::State::move_by_links(const std::vector<OpId>& readers, TensorId tensor) {
  const CpExpression ready = end_of(problem_.producer(tensor));
  const auto arrival_of = [&](std::vector<Route> routes) {
    CpExpression arrival = ready;
    if (congestion_ && !routes.empty()) {
      Sending sending{add_time(0), tensor, Leg::direct, std::move(routes)};
      follow(sending.start, ready);
      arrival = CpExpression(sending.start);
      for (const Route& route : sending.routes) add_term(arrival, route.taken, route.length);
      occupy_ports(sending);
      sendings_.push_back(std::move(sending));
    } else {
      for (const Route& route : routes) add_term(arrival, route.taken, route.length);
    }
    return arrival;
  };
  if (readers.size() == 1) {
    reach(readers.front(), arrival_of(routes_[tensor]));
    return;
  }
  for (const SpaceId space : problem_.spaces()) {
    std::vector<Route> routes;
    for (const Route& route : routes_[tensor]) {
      if (route.to == space) routes.push_back(route);
    }
    if (routes.empty()) continue;
    const CpExpression arrival = arrival_of(std::move(routes));
    for (const OpId reader : readers) reach(reader, arrival, {in(reader, space)});
  }
}

void ScheduleModel::State::move_by_host(const std::vector<OpId>& readers, TensorId tensor) {
  const OpId producer = problem_.producer(tensor);
  const CpExpression ready = end_of(producer);
  Sending out{CpVariable{}, tensor, Leg::out, {}};
  CpExpression in_host_memory = ready;
  CpExpression straight = ready;
  for (const Route& route : routes_[tensor]) {
    add_term(straight, route.taken, route.length);
    if (route.leg == Leg::out) out.routes.push_back(route);
  }
  if (congestion_ && !out.routes.empty()) {
    out.start = add_time(0);
    follow(out.start, ready);
    in_host_memory = CpExpression(out.start);
    occupy_ports(out);
    sendings_.push_back(out);
  }
  for (const Route& route : out.routes) add_term(in_host_memory, route.taken, route.length);
  if (readers.size() == 1) reach(readers.front(), straight);

  for (const SpaceId space : problem_.spaces()) {
    if (!on_host(space)) continue;
    for (const OpId reader : readers) reach(reader, in_host_memory, {in(reader, space)});
  }
  for (const Route& route : routes_[tensor]) {
    if (route.leg != Leg::in) continue;
    CpExpression arrival = in_host_memory;
    if (congestion_) {
      Sending in{add_time(0), tensor, Leg::in, {route}};
      follow(in.start, ready);
      follow(in.start, in_host_memory, {route.taken});
      arrival = CpExpression(in.start);
      occupy_ports(in);
      sendings_.push_back(std::move(in));
    }
    arrival.offset += route.length;
    for (const OpId reader : readers) {
      reach(reader, arrival, {in(reader, route.to), route.taken});
    }
  }
}

void ScheduleModel::State::occupy_ports(const Sending& sending) {
  for (const Route& route : sending.routes) {
    if (route.length == 0) continue;
    const CpInterval interval = is_true(route.taken)
                                    ? model_.add_interval(sending.start, route.length)
                                    : model_.add_interval(sending.start, route.length, route.taken);
    if (route.from.valid()) out_[route.from].push_back(interval);
    if (route.to.valid()) in_[route.to].push_back(interval);
  }
}

}  // namespace placewright
