// Finds the workspace or project a command is about. Where there is exactly one it need not be named; where there are
// several, they are listed to choose from. A name does as well as an id, if only one thing has it.

import type { ApiClient, ApiList } from './api-client.ts'
import { type JsonObject, shownAt, textAt } from './json-members.ts'
import { exitCodes, Refusal, usageRefusal } from './refusal.ts'
import { cleanText } from './table.ts'

/** More than anybody would read; a workspace further back is named by its id. */
const lookedAtMax = 1000
const shownMax = 10

export async function findWorkspace(api: ApiClient, wanted: string | undefined): Promise<string | Refusal> {
  if (wanted?.startsWith('ws_')) return wanted
  const list = await api.list('/api/workspaces', {}, lookedAtMax)
  return list instanceof Refusal ? list : choose(list, wanted, { kind: 'workspace', option: '--workspace' })
}

/** In the named workspace, or in the only one. */
export async function findProject(
  api: ApiClient,
  wanted: string | undefined,
  workspace: string | undefined,
): Promise<string | Refusal> {
  if (wanted?.startsWith('prj_')) return wanted
  const workspaceId = await findWorkspace(api, workspace)
  if (workspaceId instanceof Refusal) return workspaceId
  const list = await api.list(`/api/workspaces/${encodeURIComponent(workspaceId)}/projects`, {}, lookedAtMax)
  return list instanceof Refusal ? list : choose(list, wanted, { kind: 'project', option: '--project' })
}

interface Thing {
  readonly kind: 'workspace' | 'project'
  readonly option: string
}

function choose({ data }: ApiList, wanted: string | undefined, { kind, option }: Thing): string | Refusal {
  const fitting = wanted === undefined ? data : data.filter((each) => textAt(each, 'name') === wanted)
  const [only] = fitting
  const id = only && textAt(only, 'id')
  if (fitting.length === 1 && id !== undefined) return id
  if (fitting.length > 1) {
    return usageRefusal(`there are several; say which ${kind}:${choices(fitting)}`, `${option} ${id}`)
  }
  const attempt = data.length === 0 ? `tollgate ${kind}s create NAME` : `tollgate ${kind}s list`
  const what = wanted === undefined ? `there is no ${kind} yet.` : `there is no ${kind} "${wanted}".`
  return new Refusal(exitCodes.notFound, what, attempt)
}

function choices(things: readonly JsonObject[]): string {
  const shown = things
    .slice(0, shownMax)
    .map((each) => `\n  ${shownAt(each, 'id')}  ${cleanText(shownAt(each, 'name'))}`)
  const more = things.length > shownMax ? `\n  … and ${things.length - shownMax} more` : ''
  return `${shown.join('')}${more}`
}
