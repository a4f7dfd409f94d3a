/** @jsxImportSource preact */
// The ways to a model, in the order in which the router would try them now, and the reason for each place.

import type { CatalogRoute } from '../../catalog/entry.ts'
import { type OrderedRoute, orderRoutes } from '../../catalog/route-order.ts'
import { routeStanding } from '../../catalog/standing.ts'
import { Lamp } from '../shell/lamp.tsx'
import { Measured } from './measured.tsx'

export function RouteTable({ routes }: { readonly routes: readonly CatalogRoute[] }) {
  if (routes.length === 0) return <p class="empty">No provider that serves this model is switched on.</p>
  return (
    <>
      <table class="lanes">
        <caption class="visually-hidden">Routes</caption>
        <thead>
          <tr>
            <th scope="col">Place</th>
            <th scope="col">Provider</th>
            <th scope="col">State</th>
            <th scope="col" class="figure">
              First token
            </th>
            <th scope="col" class="figure">
              Tokens/s
            </th>
            <th scope="col">Why there</th>
          </tr>
        </thead>
        <tbody>
          {orderRoutes(routes).map((ordered) => (
            <Lane key={`${ordered.route.provider} ${ordered.route.upstream_model}`} {...ordered} />
          ))}
        </tbody>
      </table>
      <p class="hint">
        A failed try goes to the next place before you notice. Times are medians of this gateway’s own traffic in the
        last hour, from sending to the first word; the sandbox, which calls nobody, is not measured.
      </p>
    </>
  )
}

function Lane({ route, place, why }: OrderedRoute) {
  return (
    <tr class={place === undefined ? 'dim' : undefined}>
      <td class="place" data-label="Place">
        {place ?? 'out'}
      </td>
      <th scope="row">
        {route.provider}
        <code class="upstream">{route.upstream_model}</code>
      </th>
      <td data-label="State">
        <Lamp {...routeStanding(route)} />
      </td>
      <td class="figure" data-label="First token">
        <Measured figures={route.first_event_ms} unit="time" isRehearsed={route.rehearsal === true} />
      </td>
      <td class="figure" data-label="Tokens/s">
        <Measured figures={route.tokens_per_second} unit="tokens" isRehearsed={route.rehearsal === true} />
      </td>
      <td class="why" data-label="Why there">
        {why}
      </td>
    </tr>
  )
}
