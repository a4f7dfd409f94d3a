// Everyone who runs, in the order of the table. A new contender: a file beside this one and a line here.

import { bare, bareRewrite } from './bare.ts'
import type { Contender } from './contender.ts'
import { direct } from './direct.ts'
import { nginx } from './nginx.ts'
import { portkey } from './portkey.ts'
import { tollgate, tollgateTranslated, tollgateUnbilled, tollgateWallets } from './tollgate.ts'

export const CONTENDERS: readonly Contender[] = [
  direct,
  bare,
  bareRewrite,
  tollgate,
  tollgateUnbilled,
  tollgateWallets,
  tollgateTranslated,
  nginx,
  portkey,
]
