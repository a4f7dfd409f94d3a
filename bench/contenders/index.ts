// Everyone who runs, in the order of the table. A new contender: a file beside this one and a line here.

import { bare, bareDurable, bareJournal, bareLoop, bareRewrite } from './bare.ts'
import { bifrost } from './bifrost.ts'
import { busbar } from './busbar.ts'
import type { Contender } from './contender.ts'
import { direct } from './direct.ts'
import { litellm } from './litellm.ts'
import { nginx } from './nginx.ts'
import { portkey } from './portkey.ts'
import { bunServe, ownServer } from './servers.ts'
import { tollgate, tollgateLimits, tollgateUnbilled, tollgateWallets } from './tollgate.ts'

export const CONTENDERS: readonly Contender[] = [
  direct,
  nginx,
  bare,
  bareDurable,
  bareJournal,
  bareLoop,
  bareRewrite,
  ownServer,
  bunServe,
  tollgate,
  tollgateUnbilled,
  tollgateWallets,
  tollgateLimits,
  busbar,
  bifrost,
  portkey,
  litellm,
]

/** Other people's gateways: each in a folder of its name in the peers' folder. */
export const PEERS: readonly Contender[] = [busbar, bifrost, portkey, litellm]
