// Whose models and prices a page of the catalog shows: the public ones for visitors, those of one of their projects for
// people who are signed in, those of a key where a request has one. They are what GET /v1/models returns and what is charged.

import { isAllowed } from '../../api/endpoints.ts'
import { Failure } from '../../kernel/failure.ts'
import type { ClientRequest } from '../../pipeline/client-request.ts'
import type { Principal } from '../../tenancy/principal.ts'
import { type CatalogViewer, type ViewedProject, viewedProjectCookie } from '../page-data.ts'
import { readCookie } from '../session.ts'
import type { CatalogEntry } from './entry.ts'

export interface ViewedCatalogDependencies {
  /** The public catalog. */
  catalog(): readonly CatalogEntry[]
  /** The models of the key in the request's headers, as GET /v1/models lists them. */
  modelsOfKey(request: ClientRequest): Promise<readonly CatalogEntry[] | Failure>
  /** undefined = a visitor. */
  viewerOf(request: ClientRequest): Promise<Principal | undefined>
  /** An answer of the management API to a read with this request's session; undefined = it was refused. */
  readApi(request: ClientRequest, path: string): Promise<unknown>
}

export interface ViewedCatalog {
  readonly viewer: CatalogViewer
  readonly entries: readonly CatalogEntry[]
  /** The public catalog, read before the entries: a page that was rendered during a change loads them again. */
  readonly snapshot: readonly CatalogEntry[]
}

interface List<Item> {
  readonly data: readonly Item[]
}

interface NamedObject {
  readonly id: string
  readonly name: string
}

export function createViewedCatalogs({ catalog, modelsOfKey, viewerOf, readApi }: ViewedCatalogDependencies) {
  const read = async <Value>(request: ClientRequest, path: string) =>
    (await readApi(request, path)) as Value | undefined
  const modelsOfProject = async (request: ClientRequest, id: string): Promise<readonly CatalogEntry[] | undefined> =>
    (await read<List<CatalogEntry>>(request, `/api/projects/${encodeURIComponent(id)}/models`))?.data

  /** The projects of all workspaces of a person. */
  const projectsOf = async (request: ClientRequest): Promise<readonly ViewedProject[]> => {
    const workspaces = (await read<List<NamedObject>>(request, '/api/workspaces?limit=200'))?.data ?? []
    const lists = workspaces.map(async ({ id, name: workspace }) => {
      const projects = (await read<List<NamedObject>>(request, `/api/workspaces/${id}/projects?limit=200`))?.data ?? []
      return projects.map((project) => ({ id: project.id, name: project.name, workspace }))
    })
    return (await Promise.all(lists)).flat()
  }
  const projectById = async (request: ClientRequest, id: string): Promise<ViewedProject | undefined> => {
    const project = await read<NamedObject & { readonly workspace_id: string }>(
      request,
      `/api/projects/${encodeURIComponent(id)}`,
    )
    const workspace = project && (await read<NamedObject>(request, `/api/workspaces/${project.workspace_id}`))
    return project && workspace && { id: project.id, name: project.name, workspace: workspace.name }
  }

  return {
    /** For a page: the project that the viewer chose last, or their first one. Operators start with the public catalog. */
    async ofViewer(request: ClientRequest): Promise<ViewedCatalog> {
      const viewer = await viewerOf(request)
      if (!viewer) {
        const snapshot = catalog()
        return { viewer: { isSignedIn: false, mayCall: true }, entries: snapshot, snapshot }
      }
      const chosen = readCookie(request.headers, viewedProjectCookie)
      const projects = viewer.isOperator ? undefined : await projectsOf(request)
      const project = projects
        ? (projects.find(({ id }) => id === chosen) ?? projects[0])
        : chosen && (await projectById(request, chosen))
      const snapshot = catalog()
      const offered = project ? await modelsOfProject(request, project.id) : undefined
      const mayCall = viewer.isOperator || viewer.grants.some(({ role }) => isAllowed('createKey', role))
      const shared = { isSignedIn: true, mayCall, ...(projects && { projects }) }
      return project && offered
        ? { viewer: { ...shared, project }, entries: offered, snapshot }
        : { viewer: shared, entries: snapshot, snapshot }
    },
    /** For open pages, which name the project or send the key. */
    async ofRequest(request: ClientRequest, projectId: string | null): Promise<readonly CatalogEntry[] | Failure> {
      if (request.headers.has('authorization')) return await modelsOfKey(request)
      if (projectId === null) return catalog()
      const offered = await modelsOfProject(request, projectId)
      return (
        offered ?? new Failure('NOT_FOUND', 'This project does not exist, or you may not see it. Choose another one.')
      )
    },
  }
}
