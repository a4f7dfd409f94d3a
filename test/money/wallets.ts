// Wallets of a running gateway, through its management API: opened with any amount, topped up, and looked at.

import { type Managed, manage } from '../parts/manage.ts'

export interface Purse {
  readonly workspaceId: string
  /** A key of the workspace. */
  readonly key: string
}

export interface Wallets {
  /** A new workspace with this balance, in decimal USD; none if absent. */
  open(amount?: string, limits?: object): Promise<Purse>
  topUp(workspaceId: string, amount: string): Promise<void>
  /** In nano-dollars; of the first workspace if none is named. */
  read(workspaceId?: string): Promise<{ readonly posted: bigint; readonly held: bigint }>
  /** A request as the management API explains it. */
  explain(requestId: string): Promise<unknown>
}

export function createWallets(gateway: Managed): Wallets {
  let first: string | undefined

  async function firstWorkspace(): Promise<string> {
    const { data } = (await manage(gateway, 'GET', '/api/workspaces')) as { data: { id: string }[] }
    const [oldest] = data.sort((a, b) => (a.id < b.id ? -1 : 1))
    return oldest?.id ?? ''
  }

  const topUp: Wallets['topUp'] = async (workspaceId, amount) => {
    await manage(gateway, 'POST', `/api/workspaces/${workspaceId}/topups`, { amount })
  }
  return {
    topUp,
    explain: (requestId) => manage(gateway, 'GET', `/api/requests/${requestId}`),
    async open(amount, limits = {}) {
      const { id: workspaceId = '' } = await manage(gateway, 'POST', '/api/workspaces', { name: 'small' })
      const { id } = await manage(gateway, 'POST', `/api/workspaces/${workspaceId}/projects`, { name: 'project' })
      const { secret: key = '' } = await manage(gateway, 'POST', `/api/projects/${id}/keys`, { name: 'key', limits })
      if (amount !== undefined) await topUp(workspaceId, amount)
      return { workspaceId, key }
    },
    async read(workspaceId) {
      first ??= workspaceId === undefined ? await firstWorkspace() : undefined
      const { balance = '', held = '' } = await manage(gateway, 'GET', `/api/workspaces/${workspaceId ?? first}/wallet`)
      return { posted: nanos(balance), held: nanos(held) }
    },
  }
}

/** `"0.0000035"` → 3500 */
export function nanos(usd: string): bigint {
  const [whole = '0', fraction = ''] = usd.split('.')
  return BigInt(whole + fraction.padEnd(9, '0'))
}

/** `3500` → `"0.0000035"`, as the wire has it: at least two decimals. */
export function usd(amount: bigint): string {
  const digits = String(amount).padStart(10, '0')
  return `${digits.slice(0, -9)}.${digits.slice(-9).replace(/0+$/, '').padEnd(2, '0')}`
}
