// The limits of a workspace, a project or a key: one call for each, all the same.

import { Failure } from '../../kernel/failure.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { Authenticator } from '../../tenancy/authenticate.ts'
import { putLimits } from '../../tenancy/limits.ts'
import { limitsAnswer, limitsField, limitsFromBody } from './fields.ts'
import { defineRoute, notFound, type Route } from './route.ts'

export interface LimitDependencies {
  readonly ledger: Pick<Ledger, 'recount'>
  readonly invalidate: Authenticator['invalidate']
}

const places = [
  { kind: 'workspace', path: '/api/workspaces/{id}/limits', operation: 'putWorkspaceLimits' },
  { kind: 'project', path: '/api/projects/{id}/limits', operation: 'putProjectLimits' },
  { kind: 'key', path: '/api/keys/{id}/limits', operation: 'putKeyLimits' },
] as const

export function limitRoutes({ invalidate, ledger }: LimitDependencies): readonly Route[] {
  return places.map(({ kind, path, operation }) =>
    defineRoute({
      method: 'PUT',
      path,
      kind,
      operation,
      summary: `Replaces all limits of a ${kind}; what is left out is unlimited. Effective for the next call.`,
      body: limitsField,
      example: { requests_per_minute: 60, tokens_per_minute: 100_000, spend_per_month: '50.00' },
      answer: limitsField,
      status: 200,
      async write(sql, { id, body, act }) {
        const limits = await putLimits(sql, kind, id, limitsFromBody(body), act)
        if (limits === 'not found') return notFound(kind, id)
        return limits instanceof Failure ? limits : limitsAnswer(limits)
      },
      committed({ id, body: { spend_per_day: day, spend_per_month: month } }) {
        invalidate(id)
        if ((day ?? month) != null) ledger.recount(id)
      },
    }),
  )
}
