# made by hand
Creator "somebody"
graph [
  directed 1
  node [ id 0 label "a" graphics [ x 1 y 2 ] ]
  node [ id 1 label "b" ]
  node [ id 2 label "c" ]
  edge [ source 0 target 1 latency "10 ms" rate "10 Mbit" packet_loss 0.01 ]
  edge [ source 1 target 0 delay 20 bandwidth 5Mbps ]
  edge [ source 1 target 2 delay 1.5 ]
]
