// Reads what the page of keys shows: a handful of calls, however many keys there are.

import { isoTime, systemClock } from '../../../../kernel/clock.ts'
import { callForAll, together } from '../manage/call-all.ts'
import type { Call, Key, Project, Workspace } from '../manage/things.ts'
import type { StatsAnswer } from '../parts/api-answers.ts'
import { callApi, Refusal, withQuery } from '../parts/call-api.ts'
import type { ListAnswer } from '../parts/use-resource.ts'

export interface KeyFacts {
  readonly workspace: Workspace
  readonly projects: readonly Project[]
  readonly keys: readonly Key[]
  /** The last 200, newest first: for most keys they say which client used them. */
  readonly calls: readonly Call[]
  /** USD since the month began in UTC, by key; undefined = not known. */
  readonly spent: ReadonlyMap<string, string> | undefined
}

export async function readKeys(workspaceId: string): Promise<KeyFacts | Refusal> {
  const answers = await together<[Workspace, readonly Project[], readonly Key[], ListAnswer<Call>]>(
    callApi(`/api/workspaces/${workspaceId}`),
    callForAll(`/api/workspaces/${workspaceId}/projects`),
    callForAll(`/api/keys?workspace_id=${workspaceId}`),
    callApi(`/api/requests?workspace_id=${workspaceId}&limit=200`),
  )
  if (answers instanceof Refusal) return answers
  const [workspace, projects, keys, { data: calls }] = answers
  return { workspace, projects, keys, calls, spent: await readSpent(workspaceId) }
}

/** Keys can be managed without it. */
async function readSpent(workspaceId: string): Promise<KeyFacts['spent']> {
  const from = `${isoTime(systemClock.now()).slice(0, 7)}-01T00:00:00Z`
  const path = withQuery('/api/stats', { workspace_id: workspaceId, group: 'key', from })
  const stats = await callApi<Pick<StatsAnswer, 'groups'>>(path)
  return stats instanceof Refusal ? undefined : new Map(stats.groups.map(({ id, cost }) => [id, cost]))
}
