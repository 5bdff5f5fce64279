# Six cars on a road of 2 km, as setdest of ns-2 writes it: metres, and metres a second.
$node_(0) set X_ 0.0
$node_(0) set Y_ 0.0
$node_(0) set Z_ 0.0
$node_(1) set X_ 150.0
$node_(1) set Y_ 0.0
$node_(1) set Z_ 0.0
$node_(2) set X_ 300.0
$node_(2) set Y_ 0.0
$node_(2) set Z_ 0.0
$node_(3) set X_ 450.0
$node_(3) set Y_ 4.0
$node_(3) set Z_ 0.0
$node_(4) set X_ 2000.0
$node_(4) set Y_ 4.0
$node_(4) set Z_ 0.0
$node_(5) set X_ 1000.0
$node_(5) set Y_ 20.0
$node_(5) set Z_ 0.0
$ns_ at 0.0 "$node_(0) setdest 2000.0 0.0 30.0"
$ns_ at 0.0 "$node_(1) setdest 2000.0 0.0 20.0"
$ns_ at 5.0 "$node_(2) setdest 2000.0 0.0 25.0"
$ns_ at 0.0 "$node_(3) setdest 600.0 4.0 10.0"
$ns_ at 30.0 "$node_(3) setdest 0.0 4.0 15.0"
$ns_ at 0.0 "$node_(4) setdest 0.0 4.0 28.0"
