// Finds the route of a path as it was sent: no decoding, no folding of dots or slashes, so that there is one spelling
// of every path and nothing to disagree about. Only the id of a model has two: its slash may be sent as %2F.

import { Failure } from '../../kernel/failure.ts'
import { isId } from '../../kernel/ids.ts'
import { nearestNames } from '../../kernel/nearest.ts'
import { idPrefixes, type Method, type Route } from './route.ts'

export interface Match {
  readonly route: Route
  /** As sent; whether it is one of the route's kind says `hasIdForm`. */
  readonly id: string
  readonly provider: string
  readonly model: string
}

export type MatchRoute = (method: string, path: string) => Match | Failure

export function createMatchRoute(routes: readonly Route[]): MatchRoute {
  const byLength = Map.groupBy(
    routes.flatMap((route) => spellings(route.path).map((path) => ({ route, parts: path.split('/') }))),
    ({ parts }) => parts.length,
  )
  const fixedPaths = [...new Set(routes.map(({ path }) => path))].filter((path) => !path.includes('{'))

  return (method, path) => {
    const sent = path.split('/')
    const found = (byLength.get(sent.length) ?? []).filter(({ parts }) =>
      parts.every((part, at) => fits(part, sent[at])),
    )
    if (found.length === 0) return unknownPath(method, path, fixedPaths)
    // What can be read can be asked about; the runtime leaves the body out.
    const wanted = method === 'HEAD' ? 'GET' : method
    const match = found.find(({ route }) => route.method === wanted)
    if (!match)
      return wrongMethod(
        method,
        found.map(({ route }) => route.method),
      )
    const sentAs = (name: string) => sent[match.parts.indexOf(name)] ?? ''
    const model = [sentAs('{creator}'), sentAs('{model}')].filter(Boolean).map(decoded).join('/')
    return { route: match.route, id: sentAs('{id}'), provider: sentAs('{provider}'), model }
  }
}

const namesAnything: ReadonlySet<string> = new Set(['{id}', '{creator}', '{model}'])

function spellings(path: string): readonly string[] {
  return path.includes('{model}') ? [path, path.replace('{model}', '{creator}/{model}')] : [path]
}

function decoded(sent: string): string {
  try {
    return decodeURIComponent(sent)
  } catch {
    // Not a percent-encoding; then it is not a model's id either, and reads as an unknown one.
    return sent
  }
}

function fits(part: string, sent: string | undefined): boolean {
  if (part === '{provider}') return sent !== undefined && /^[a-z0-9][a-z0-9-]{0,62}$/.test(sent)
  return namesAnything.has(part) ? sent !== undefined && sent !== '' : part === sent
}

export function hasIdForm({ route: { kind }, id }: Match): boolean {
  return kind === undefined || isId(idPrefixes[kind], id)
}

function wrongMethod(method: string, served: readonly Method[]): Failure {
  const allow = [...new Set(served)].join(', ')
  return new Failure('METHOD_NOT_ALLOWED', `${method} is not served here; use ${allow}.`, { allow })
}

function unknownPath(method: string, path: string, fixedPaths: readonly string[]): Failure {
  const shown = path.length > 200 ? `${path.slice(0, 200)}…` : path
  const [near] = nearestNames(path.slice(0, 200), fixedPaths, 1)
  const hint = near === undefined ? 'All calls are in GET /api/openapi.json.' : `Did you mean ${near}?`
  return new Failure('NOT_FOUND', `Nothing is served at ${method} ${shown}. ${hint}`)
}
